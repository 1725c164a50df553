#include "chat/reasoning_scan.h"

#include <utility>

namespace foretoken {

ReasoningScan::ReasoningScan(const ReasoningFormat& format, bool inside)
    : open_(format.open),
      close_(format.close),
      inside_(inside || format.always),
      anywhere_(format.anywhere) {}

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
  if (state_ == State::kStart) return start_byte(byte, sink, content);
  std::string text;
  if (state_ == State::kInside) {
    if (close_.feed(byte, &text) >= 0) state_ = State::kOutside;
    return sink->reasoning(text);
  }
  if (!anywhere_) {
    *content += byte;
    return;
  }
  if (open_.feed(byte, &text) >= 0) state_ = State::kInside;
  *content += text;
}

void ReasoningScan::finish(CallSink* sink, std::string* content) {
  const std::string rest = space_ + open_.take_held() + close_.take_held();
  if (state_ == State::kInside || (state_ == State::kStart && inside_))
    return sink->reasoning(rest);
  *content += rest;
}

}  // namespace foretoken
