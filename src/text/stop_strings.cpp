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

StopStrings::Matcher StopStrings::matcher_of(std::string text) {
  std::vector<size_t> border = borders(text);
  return {std::move(text), std::move(border)};
}

Result<StopStrings> StopStrings::create(std::vector<std::string> stops, bool include_in_output,
                                        const ReasoningMarkers& reasoning) {
  StopStrings result;
  result.include_in_output_ = include_in_output;
  for (std::string& stop : stops) {
    if (stop.empty()) return invalid_argument("a stop string is empty; leave it out");
    result.matchers_.push_back(matcher_of(std::move(stop)));
  }
  if (reasoning.closes.empty()) return result;
  result.opens_ = reasoning.opens;
  for (const std::string& close : reasoning.closes) result.closes_.push_back(matcher_of(close));
  result.place_ = reasoning.opened ? Place::kReasoning : Place::kBeginning;
  return result;
}

bool StopStrings::Matcher::advance(char byte) {
  while (matched > 0 && byte != stop[matched]) matched = border[matched - 1];
  if (byte == stop[matched]) ++matched;
  return matched == stop.size();
}

// Whether the text that begins so begins with reasoning, or neither can be told yet.
void StopStrings::find_beginning(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  place_ = text.empty() ? Place::kBeginning : Place::kAnswer;
  for (const std::string& open : opens_) {
    if (text.starts_with(open)) {
      place_ = Place::kReasoning;
      return;
    }
    if (open.starts_with(text)) place_ = Place::kBeginning;
  }
}

void StopStrings::advance_reasoning(char byte) {
  bool ends = false;
  for (Matcher& close : closes_) ends |= close.advance(byte);
  if (ends) place_ = Place::kAnswer;
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
  if (place_ == Place::kBeginning) return held_.size();
  size_t held = 0;
  for (const Matcher& matcher : matchers_) held = std::max(held, matcher.matched);
  return held;
}

StopStrings::Output StopStrings::append(std::string_view piece, bool looks) {
  if (stopped_) return {};
  std::string whole;
  if (place_ == Place::kBeginning) {
    whole = std::exchange(held_, {}).append(piece);
    if (!looks) num_passed_ = whole.size();
    find_beginning(whole);
    if (place_ == Place::kBeginning) {
      held_ = std::move(whole);
      return {};
    }
    piece = whole;
  }
  for (size_t i = 0; i < piece.size(); ++i) {
    held_ += piece[i];
    if (place_ == Place::kReasoning) {
      advance_reasoning(piece[i]);
      continue;
    }
    if (!looks || i < num_passed_) continue;
    const std::optional<size_t> matched = advance(piece[i]);
    if (!matched) continue;
    stopped_ = true;
    if (!include_in_output_) held_.resize(held_.size() - matchers_[*matched].stop.size());
    return {std::exchange(held_, {}), matched};
  }
  num_passed_ = 0;
  std::string safe = held_.substr(0, held_.size() - num_held());
  held_.erase(0, safe.size());
  return {std::move(safe), std::nullopt};
}

std::string StopStrings::flush() {
  if (std::exchange(place_, Place::kAnswer) == Place::kBeginning) {
    const std::string rest = std::exchange(held_, {});
    std::string shown = append(rest).text;
    held_ = shown.append(held_);
  }
  for (Matcher& matcher : matchers_) matcher.matched = 0;
  return std::exchange(held_, {});
}

}  // namespace foretoken
