#include "chat/scan/tag_suffix.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

constexpr size_t kMaxSuffix = 32;

}  // namespace

// held: behind "<" or "</".
TagSuffix::Match TagSuffix::match(std::string_view name, std::string_view held) const {
  const size_t both = std::min(name.size(), held.size());
  if (name.substr(0, both) != held.substr(0, both)) return Match::kNone;
  if (held.size() <= name.size()) return Match::kPerhaps;
  const std::string_view rest = held.substr(name.size());
  if (rest.front() == '>') return Match::kTag;
  const bool is_suffix = rest.front() == ':' && rest.size() <= kMaxSuffix &&
                         rest.find_first_of(" \t\r\n<") == std::string_view::npos;
  if (!is_suffix) return Match::kNone;
  if (rest.back() != '>') return Match::kPerhaps;
  return rest.size() > 2 ? Match::kTag : Match::kNone;
}

TagSuffix::Match TagSuffix::match_any(std::string_view* name) const {
  if (held_.front() != '<') return Match::kNone;
  if (held_ == "<") return Match::kPerhaps;
  const std::string_view behind = std::string_view(held_).substr(held_[1] == '/' ? 2 : 1);
  Match best = Match::kNone;
  for (const std::string& one : names_) {
    const Match found = match(one, behind);
    if (found == Match::kTag) *name = one;
    best = std::max(best, found);
  }
  return best;
}

void TagSuffix::feed(char byte, std::string* text) {
  held_ += byte;
  while (!held_.empty()) {
    std::string_view name;
    const Match found = match_any(&name);
    if (found == Match::kPerhaps) return;
    if (found == Match::kTag) {
      *text += (held_[1] == '/' ? "</" : "<") + std::string(name) + ">";
      return held_.clear();
    }
    *text += held_.front();
    held_.erase(0, 1);
  }
}

std::string TagSuffix::take_held() { return std::exchange(held_, {}); }

std::string without_suffixes(const std::vector<std::string>& names, std::string_view text) {
  TagSuffix suffix(names);
  std::string plain;
  for (const char byte : text) suffix.feed(byte, &plain);
  return plain + suffix.take_held();
}

}  // namespace foretoken
