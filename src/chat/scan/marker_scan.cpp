#include "chat/scan/marker_scan.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

bool begins_one(const std::vector<std::string>& texts, std::string_view beginning) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.starts_with(beginning); });
}

int number_of(const std::vector<std::string>& texts, std::string_view wanted) {
  const auto found = std::find(texts.begin(), texts.end(), wanted);
  return found == texts.end() ? -1 : static_cast<int>(found - texts.begin());
}

}  // namespace

std::vector<std::string> joined(std::vector<std::string> all,
                                const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

int MarkerScan::feed(char byte, std::string* text) {
  held_ += byte;
  while (!held_.empty() && !begins_one(markers_, held_)) {
    *text += held_.front();
    held_.erase(0, 1);
  }
  const int number = held_.empty() ? -1 : number_of(markers_, held_);
  if (number >= 0) held_.clear();
  return number;
}

std::string MarkerScan::take_held() { return std::exchange(held_, {}); }

size_t MarkerScan::max_len() const {
  size_t longest = 0;
  for (const std::string& marker : markers_) longest = std::max(longest, marker.size());
  return longest;
}

int ExpectScan::feed(char byte) {
  if (seen_.empty() && is_space(byte)) return kMore;
  seen_ += byte;
  const int number = number_of(texts_, seen_);
  if (number >= 0) seen_.clear();
  if (number >= 0 || begins_one(texts_, seen_)) return number;
  return kFlaw;
}

}  // namespace foretoken
