#include "base/files/half_pairs.h"

#include <charconv>
#include <cstdint>
#include <optional>

namespace foretoken {
namespace {

// The code unit of the escape \uXXXX at `at`; nothing for other text.
std::optional<uint32_t> escaped_unit(std::string_view text, size_t at) {
  constexpr size_t kLength = 6;
  if (text.substr(at, 2) != "\\u" || text.size() - at < kLength) return std::nullopt;
  uint32_t unit = 0;
  const char* end = text.data() + at + kLength;
  const auto parsed = std::from_chars(text.data() + at + 2, end, unit, 16);
  return parsed.ptr == end ? std::optional(unit) : std::nullopt;
}

bool is_high_surrogate(uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low_surrogate(uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

}  // namespace

bool may_have_half_pairs(std::string_view json) {
  return json.find("\\ud") != std::string_view::npos || json.find("\\uD") != std::string_view::npos;
}

std::string without_half_pairs(std::string_view json) {
  std::string repaired(json);
  for (size_t at = json.find('\\'); at != std::string_view::npos; at = json.find('\\', at)) {
    const std::optional<uint32_t> unit = escaped_unit(json, at);
    if (!unit) {
      at += 2;
      continue;
    }
    constexpr size_t kLength = 6;
    const bool pair =
        is_high_surrogate(*unit) && is_low_surrogate(escaped_unit(json, at + kLength).value_or(0));
    if (!pair && (is_high_surrogate(*unit) || is_low_surrogate(*unit))) {
      repaired.replace(at + 2, 4, "fffd");
    }
    at += pair ? 2 * kLength : kLength;
  }
  return repaired;
}

}  // namespace foretoken
