#include "chat/calls/reasoning_scan.h"

#include <utility>

namespace foretoken {

namespace {

std::vector<std::string> outside_markers(const ReasoningFormat& format) {
  std::vector<std::string> markers = format.anywhere ? format.open : std::vector<std::string>();
  markers = joined(std::move(markers), format.dropped);
  return format.ends.empty() ? markers : joined(std::move(markers), format.close);
}

}  // namespace

ReasoningScan::ReasoningScan(const ReasoningFormat& format, bool inside)
    : open_(format.open),
      close_(joined(format.close, format.ends)),
      outside_(outside_markers(format)),
      num_close_(static_cast<int>(format.close.size())),
      num_again_(format.anywhere ? static_cast<int>(format.open.size()) : 0),
      num_left_out_(num_again_ + static_cast<int>(format.dropped.size())),
      prefix_(format.prefix),
      inside_(inside || format.always) {}

// White space, then perhaps the opening marker, also where the prompt has opened the reasoning:
// some models repeat it.
void ReasoningScan::start_byte(char byte, CallSink* sink, std::string* content) {
  std::string text;
  if (open_.feed(byte, &text) >= 0) {
    space_.clear();
    state_ = State::kInside;
    return;
  }
  space_ += text;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return;
  // Held bytes of a second marker candidate come again through the state that is right for them.
  std::string rest = std::exchange(space_, {}) + open_.take_held();
  state_ = inside_ ? State::kInside : State::kOutside;
  for (const char again : rest) feed(again, sink, content);
}

void ReasoningScan::feed(char byte, CallSink* sink, std::string* content) {
  *content += std::exchange(prefix_, {});
  if (state_ == State::kStart) return start_byte(byte, sink, content);
  if (state_ == State::kOutside) return outside_byte(byte, content);
  std::string text;
  const int number = close_.feed(byte, &text);
  sink->reasoning(text);
  if (number < 0) return;
  state_ = State::kOutside;
  ended_early_ = number >= num_close_;
  if (ended_early_) *content += close_.marker(number);
}

void ReasoningScan::outside_byte(char byte, std::string* content) {
  const int number = outside_.feed(byte, content);
  if (number >= 0 && number < num_again_) state_ = State::kInside;
  if (number < num_left_out_) return;
  if (!ended_early_) *content += outside_.marker(number);
  ended_early_ = false;
}

void ReasoningScan::finish(CallSink* sink, std::string* content) {
  const std::string rest = space_ + open_.take_held() + close_.take_held();
  const bool reasoning = state_ == State::kInside || (state_ == State::kStart && inside_);
  if (reasoning) sink->reasoning(rest);
  *content += (reasoning ? std::string() : rest) + outside_.take_held();
}

}  // namespace foretoken
