#include "chat/calls/marked_calls.h"

#include <algorithm>
#include <utility>

namespace foretoken {
MarkedCalls::MarkedCalls(const Markers& markers)
    : num_open_(static_cast<int>(markers.open.size())),
      markers_(joined(markers.open, markers.stray)),
      passing_(joined(joined(markers.open, markers.stray), markers.enders)) {}

bool MarkedCalls::opened_bare(char, CallSink*) { return false; }

void MarkedCalls::feed(char byte, CallSink* sink) {
  if (state_ == State::kText) return text_byte(byte, sink);
  if (state_ == State::kPassing) return passing_byte(byte, sink);
  held_ += byte;
  inside(byte, sink);
}

void MarkedCalls::enter(int number, CallSink* sink) {
  state_ = State::kInside;
  held_.clear();
  marker_ = markers_.marker(number);
  calls_before_ = sink->num_calls();
  is_closed_ = false;
  opened(number, sink);
}

void MarkedCalls::text(std::string_view text, CallSink* sink) {
  has_content_ = has_content_ || text.find_first_not_of(" \t\r\n") != std::string_view::npos;
  sink->content(text);
}

void MarkedCalls::text_byte(char byte, CallSink* sink) {
  std::string text;
  const int number = markers_.feed(byte, &text);
  for (size_t i = 0; i < text.size(); ++i) {
    if (bare_allowed_ && !is_space(text[i]) && begin_bare(text[i], sink)) {
      // What waited for a marker belongs to the call.
      const std::string rest = text.substr(i + 1) + markers_.take_held();
      for (const char again : rest) feed(again, sink);
      return;
    }
    this->text({&text[i], 1}, sink);
  }
  if (number < 0) return;
  if (number < num_open_) return enter(number, sink);
  const bool ends_calls = has_call(*sink) && (!is_closed_ || !has_content_);
  if (!ends_calls) this->text(markers_.marker(number), sink);
}

bool MarkedCalls::begin_bare(char byte, CallSink* sink) {
  state_ = State::kInside;
  held_ = byte;
  marker_.clear();
  calls_before_ = sink->num_calls();
  is_closed_ = false;
  if (opened_bare(byte, sink)) return true;
  leave();
  bare_allowed_ = false;
  return false;
}

void MarkedCalls::passing_byte(char byte, CallSink* sink) {
  const int number = passing_.feed(byte, &passed_);
  if (number < 0) return;
  passed_.clear();
  leave();
  if (number < num_open_) enter(number, sink);
}

void MarkedCalls::leave() {
  held_.clear();
  state_ = State::kText;
  is_closed_ = true;
  has_content_ = false;
}

// Only the end of what was held is looked through for calls again: all of it, again and again,
// would be quadratic.
void MarkedCalls::give_back(CallSink* sink) {
  const std::string rest = std::exchange(held_, {});
  const size_t certain = rest.size() - std::min(rest.size(), markers_.max_len());
  state_ = State::kText;
  bare_allowed_ = false;
  std::string text;
  if (!is_cut_ && !has_call(*sink)) text = std::exchange(marker_, {});
  for (size_t i = 0; i < certain; ++i) {
    const int number = markers_.feed(rest[i], &text);
    if (number >= 0 && !is_cut_) text += markers_.marker(number);
  }
  this->text(text, sink);
  for (size_t i = certain; i < rest.size(); ++i) feed(rest[i], sink);
}

void MarkedCalls::pass_over(CallSink* sink) {
  sink->end_call();
  const std::string rest = std::exchange(held_, {});
  state_ = State::kPassing;
  for (const char byte : rest) feed(byte, sink);
}

void MarkedCalls::finish(CallSink* sink) {
  is_cut_ = true;
  while (state_ == State::kInside) cut(sink);
  sink->content(passed_ + passing_.take_held() + markers_.take_held());
  passed_.clear();
  leave();
}

}  // namespace foretoken
