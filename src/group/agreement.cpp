#include "group/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace foretoken::group {
namespace {

const AgreedPart* find(const AgreedParts& parts, const std::string& name) {
  const auto at = std::find_if(parts.begin(), parts.end(),
                               [&](const AgreedPart& part) { return part.name == name; });
  return at == parts.end() ? nullptr : &*at;
}

}  // namespace

std::string digest(std::string_view text) {
  // FNV-1a: no secret depends on it.
  uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return fmt::format("{:016x}", hash);
}

std::optional<std::string> first_difference(const AgreedParts& of_leader,
                                            const AgreedParts& of_rank, const std::string& rank,
                                            const std::string& leader) {
  for (const AgreedPart& part : of_leader) {
    const AgreedPart* other = find(of_rank, part.name);
    if (other == nullptr) return fmt::format("{} says nothing of {}", rank, part.name);
    if (other->value != part.value) {
      return fmt::format("{} has {} {}, {} has {}; start all ranks alike", rank, part.name,
                         other->value.empty() ? "(none)" : other->value, leader,
                         part.value.empty() ? "(none)" : part.value);
    }
  }
  for (const AgreedPart& part : of_rank) {
    if (find(of_leader, part.name) == nullptr) {
      return fmt::format("{} has {}, {} says nothing of it; start all ranks alike", rank, part.name,
                         leader);
    }
  }
  return std::nullopt;
}

}  // namespace foretoken::group
