#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

std::vector<size_t> borders(const std::string& stop) {
  std::vector<size_t> border(stop.size(), 0);
  for (size_t i = 1; i < stop.size(); ++i) {
    size_t length = border[i - 1];
    while (length > 0 && stop[i] != stop[length]) length = border[length - 1];
    border[i] = stop[i] == stop[length] ? length + 1 : 0;
  }
  return border;
}

}  // namespace

Result<StopStrings> StopStrings::create(std::vector<std::string> stops, bool include_in_output) {
  StopStrings result;
  result.include_in_output_ = include_in_output;
  for (std::string& stop : stops) {
    if (stop.empty()) return invalid_argument("a stop string is empty; leave it out");
    std::vector<size_t> border = borders(stop);
    result.matchers_.push_back({std::move(stop), std::move(border)});
  }
  return result;
}

bool StopStrings::Matcher::advance(char byte) {
  while (matched > 0 && byte != stop[matched]) matched = border[matched - 1];
  if (byte == stop[matched]) ++matched;
  return matched == stop.size();
}

// Feeds every matcher; returns the longest stop string that this byte completes.
std::optional<size_t> StopStrings::advance(char byte) {
  std::optional<size_t> best;
  for (size_t i = 0; i < matchers_.size(); ++i) {
    if (!matchers_[i].advance(byte)) continue;
    if (!best || matchers_[i].stop.size() > matchers_[*best].stop.size()) best = i;
  }
  return best;
}

size_t StopStrings::num_held() const {
  size_t held = 0;
  for (const Matcher& matcher : matchers_) held = std::max(held, matcher.matched);
  return held;
}

StopStrings::Output StopStrings::append(std::string_view piece) {
  if (stopped_) return {};
  for (const char byte : piece) {
    held_ += byte;
    const std::optional<size_t> matched = advance(byte);
    if (!matched) continue;
    stopped_ = true;
    if (!include_in_output_) held_.resize(held_.size() - matchers_[*matched].stop.size());
    return {std::exchange(held_, {}), matched};
  }
  std::string safe = held_.substr(0, held_.size() - num_held());
  held_.erase(0, safe.size());
  return {std::move(safe), std::nullopt};
}

std::string StopStrings::flush() {
  for (Matcher& matcher : matchers_) matcher.matched = 0;
  return std::exchange(held_, {});
}

}  // namespace foretoken
