#include "chat/deepseek_calls.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

constexpr const char* kCallsBegin = "<｜tool▁calls▁begin｜>";
constexpr const char* kCallsEnd = "<｜tool▁calls▁end｜>";
constexpr const char* kCallBegin = "<｜tool▁call▁begin｜>";
constexpr const char* kCallEnd = "<｜tool▁call▁end｜>";
constexpr const char* kSeparator = "<｜tool▁sep｜>";
constexpr std::string_view kFence = "```json";
constexpr size_t kMaxNameLen = 256;

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first));
}

}  // namespace

DeepseekCalls::DeepseekCalls()
    : markers_({kCallsBegin}),
      separator_({kSeparator}),
      section_({kCallBegin, kCallsEnd}),
      end_({std::string("```") + kCallEnd, std::string("```\n") + kCallEnd, kCallEnd}) {}

void DeepseekCalls::feed(char byte, CallSink* sink) {
  if (state_ == State::kText) return text_byte(byte, sink);
  raw_ += byte;
  if (state_ == State::kHeader) return header_byte(byte, sink);
  if (state_ == State::kName) return name_byte(byte, sink);
  if (state_ == State::kArguments) return arguments_byte(byte, sink);
  const bool in_section = state_ == State::kSection;
  const int number = in_section ? section_.feed(byte) : end_.feed(byte);
  if (number == ExpectScan::kFlaw) return flaw(sink);
  if (number < 0) return;
  if (!in_section) {
    raw_.clear();
    state_ = State::kSection;
  } else if (number == 0) {
    header_.clear();
    state_ = State::kHeader;
  } else {
    if (!had_call_) return flaw(sink);
    raw_.clear();
    state_ = State::kText;
  }
}

void DeepseekCalls::text_byte(char byte, CallSink* sink) {
  std::string text;
  const int number = markers_.feed(byte, &text);
  sink->content(text);
  if (number < 0) return;
  raw_ = kCallsBegin;
  had_call_ = false;
  section_ = ExpectScan({kCallBegin, kCallsEnd});
  state_ = State::kSection;
}

void DeepseekCalls::header_byte(char byte, CallSink* sink) {
  const bool ended = separator_.feed(byte, &header_) >= 0;
  if (header_.size() > kMaxNameLen) return flaw(sink);
  if (!ended) return;
  header_ = trimmed(header_);
  name_.clear();
  state_ = State::kName;
}

// Either the arguments begin at once, behind a header that is the name, or "name", a fence, and the
// arguments.
void DeepseekCalls::name_byte(char byte, CallSink* sink) {
  if (byte != '{') {
    name_ += byte;
    if (name_.size() > kMaxNameLen) flaw(sink);
    return;
  }
  const std::string behind = trimmed(name_);
  name_ = header_;
  if (!behind.empty()) {
    if (!std::string_view(behind).ends_with(kFence)) return flaw(sink);
    name_ = trimmed(std::string_view(behind).substr(0, behind.size() - kFence.size()));
  }
  if (name_.empty() || name_.find_first_of(" \t\r\n") != std::string::npos) return flaw(sink);
  begin_call(sink);
  arguments_byte(byte, sink);
}

void DeepseekCalls::begin_call(CallSink* sink) {
  sink->begin_call(name_);
  arguments_ = JsonScan();
  had_call_ = true;
  state_ = State::kArguments;
}

void DeepseekCalls::arguments_byte(char byte, CallSink* sink) {
  const ScanOutcome outcome = arguments_.feed(byte);
  if (outcome == ScanOutcome::kFlaw) return flaw(sink);
  sink->arguments(json_byte(byte, arguments_.in_string()));
  raw_.clear();
  if (outcome != ScanOutcome::kDone) return;
  end_ = ExpectScan({std::string("```") + kCallEnd, std::string("```\n") + kCallEnd, kCallEnd});
  section_ = ExpectScan({kCallBegin, kCallsEnd});
  state_ = State::kEnd;
}

void DeepseekCalls::flaw(CallSink* sink) {
  const std::string rest = std::exchange(raw_, {});
  const size_t tail = markers_.num_certain(rest.size());
  separator_.take_held();
  state_ = State::kText;
  sink->content(std::string_view(rest).substr(0, tail));
  for (size_t i = tail; i < rest.size(); ++i) feed(rest[i], sink);
}

void DeepseekCalls::finish(CallSink* sink) {
  const std::string held = markers_.take_held();
  const bool after_call = had_call_ && (state_ == State::kSection || state_ == State::kEnd);
  if (state_ == State::kText) {
    sink->content(held);
  } else if (!after_call && state_ != State::kArguments) {
    sink->content(raw_);
  }
  raw_.clear();
  state_ = State::kText;
}

}  // namespace foretoken
