#include "serve/fields/lax_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// The digits of a number without the underscores between them, and without a plus before them;
// empty where it has none, or where they stand elsewhere.
std::string plain_digits(std::string_view text) {
  text = without_blanks(text);
  if (text.starts_with("+")) {
    text.remove_prefix(1);
    if (text.starts_with("-")) return {};
  }
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
      continue;
    }
    const bool between =
        i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!between) return {};
  }
  return plain;
}

template <class T>
std::optional<T> parsed_whole(std::string_view text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

std::optional<json> integer_of_text(const std::string& text) {
  std::string digits = plain_digits(text);
  // Zeros behind a point are no fraction.
  const size_t point = digits.find('.');
  if (point != std::string::npos) {
    const std::string_view fraction = std::string_view(digits).substr(point + 1);
    const bool zeros =
        !fraction.empty() && fraction.find_first_not_of('0') == std::string_view::npos;
    if (!zeros || text.find('_', text.find('.')) != std::string::npos) return std::nullopt;
    digits.resize(point);
  }
  if (const auto number = parsed_whole<int64_t>(digits)) return json(*number);
  if (const auto number = parsed_whole<uint64_t>(digits)) return json(*number);
  return std::nullopt;
}

std::optional<double> number_of_text(const std::string& text) {
  const std::string digits = plain_digits(text);
  double number = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  const bool whole = !digits.empty() && parsed.ec == std::errc() && parsed.ptr == end;
  return whole && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

bool is_word(std::string_view word, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), word) != known.end();
}

}  // namespace

std::optional<bool> lax_flag(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value == 0) return false;
  if (value == 1) return true;
  if (!value.is_string()) return std::nullopt;
  auto word = value.get<std::string>();
  std::transform(word.begin(), word.end(), word.begin(), [](char byte) {
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
  });
  if (is_word(word, {"0", "off", "f", "false", "n", "no"})) return false;
  if (is_word(word, {"1", "on", "t", "true", "y", "yes"})) return true;
  return std::nullopt;
}

std::optional<json> lax_integer(const json& value) {
  if (value.is_number_integer()) return value;
  if (value.is_boolean()) return json(value.get<bool>() ? 1 : 0);
  if (value.is_string()) return integer_of_text(value.get<std::string>());
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  // Beyond that every double is whole, and 64 bits may not hold it.
  constexpr double kMax = 9.2e18;
  if (std::trunc(number) != number || std::abs(number) >= kMax) return std::nullopt;
  return json(static_cast<int64_t>(number));
}

std::optional<double> lax_number(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  return value.is_string() ? number_of_text(value.get<std::string>()) : std::nullopt;
}

}  // namespace foretoken
