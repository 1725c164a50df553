#include "chat/calls/forced_calls.h"

namespace foretoken {

std::unique_ptr<ToolParser> make_required_calls() {
  JsonCallFormat format;
  format.bare = true;
  format.list = true;
  format.forced = true;
  return std::make_unique<JsonCalls>(format);
}

void NamedCall::feed(char byte, CallSink* sink) {
  if (state_ == State::kStart && byte == '{') {
    sink->begin_call(name_);
    state_ = State::kArguments;
  } else if (state_ == State::kStart && !is_space(byte)) {
    state_ = State::kRest;
  }
  if (state_ != State::kArguments) return sink->content({&byte, 1});
  const ScanOutcome outcome = arguments_.feed(byte);
  if (outcome != ScanOutcome::kMore) state_ = State::kRest;
  if (outcome == ScanOutcome::kFlaw) return sink->content({&byte, 1});
  sink->arguments(json_byte(byte, arguments_.in_string()));
  if (outcome == ScanOutcome::kDone) sink->end_call();
}

}  // namespace foretoken
