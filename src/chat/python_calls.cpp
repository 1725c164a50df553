#include "chat/python_calls.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace foretoken {
namespace {

constexpr size_t kMaxNameLen = 256;

bool is_identifier_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' ||
         static_cast<unsigned char>(byte) >= 0x80;
}

std::vector<std::string> markers_of(const std::string& open) {
  return open.empty() ? std::vector<std::string>() : std::vector<std::string>{open};
}

}  // namespace

PythonCalls::PythonCalls(const Format& format)
    : format_(format), markers_(markers_of(format.open)) {}

void PythonCalls::feed(char byte, CallSink* sink) {
  if (state_ == State::kText) return text_byte(byte, sink);
  raw_ += byte;
  switch (state_) {
    case State::kList:
      if (byte == '[') {
        name_.clear();
        state_ = State::kName;
      } else if (!is_space(byte)) {
        flaw(sink);
      }
      return;
    case State::kName:
      return name_byte(byte, sink);
    case State::kFirst:
    case State::kArgument:
      return argument_byte(byte, sink);
    case State::kValue:
      return value_byte(byte, sink);
    case State::kAfterValue:
    case State::kAfterCall:
      return after_byte(byte, sink);
    default:
      return close_byte(sink);
  }
}

void PythonCalls::text_byte(char byte, CallSink* sink) {
  std::string text;
  if (markers_.feed(byte, &text) >= 0) {
    sink->content(text);
    raw_ = format_.open;
    marked_ = true;
    had_call_ = false;
    state_ = State::kList;
    return;
  }
  if (at_start_ && text == "[") {
    raw_ = text;
    name_.clear();
    marked_ = false;
    had_call_ = false;
    state_ = State::kName;
    return;
  }
  if (text.find_first_not_of(" \t\r\n") != std::string::npos) at_start_ = false;
  sink->content(text);
}

void PythonCalls::name_byte(char byte, CallSink* sink) {
  if (byte == '(') {
    const bool allowed = marked_ || sink->knows(name_);
    if (name_.empty() || !allowed) return flaw(sink);
    begun_ = false;
    key_.clear();
    state_ = State::kFirst;
    return;
  }
  if (is_space(byte) && name_.empty()) return;
  if (had_call_ && byte == ']' && name_.empty()) {
    raw_.clear();
    state_ = State::kClose;
    return;
  }
  name_ += byte;
  const bool fits = is_identifier_byte(byte) || byte == '.' || byte == '-';
  if (!fits || name_.size() > kMaxNameLen) flaw(sink);
}

// Everything so far is in the sink.
void PythonCalls::send(std::string_view json, CallSink* sink) {
  if (!begun_) {
    sink->begin_call(name_);
    sink->arguments("{");
  }
  begun_ = true;
  sink->arguments(json);
  raw_.clear();
}

void PythonCalls::argument_byte(char byte, CallSink* sink) {
  if (byte == ')' && key_.empty()) {
    send("}", sink);
    had_call_ = true;
    state_ = State::kAfterCall;
    return;
  }
  if (byte == '=') {
    while (!key_.empty() && is_space(key_.back())) key_.pop_back();
    if (key_.empty()) return flaw(sink);
    pending_ = (begun_ ? ", " : "") +
               nlohmann::json(key_).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
               ": ";
    value_ = PythonScan();
    state_ = State::kValue;
    return;
  }
  if (is_space(byte) && key_.empty()) return;
  const bool spaced = !key_.empty() && is_space(key_.back());
  key_ += byte;
  const bool fits = is_space(byte) || (is_identifier_byte(byte) && !spaced);
  if (!fits || key_.size() > kMaxNameLen) flaw(sink);
}

void PythonCalls::value_byte(char byte, CallSink* sink) {
  std::string json;
  const ScanOutcome outcome = value_.feed(byte, &json);
  if (outcome == ScanOutcome::kFlaw) return flaw(sink);
  if (!json.empty()) send(std::exchange(pending_, {}) + json, sink);
  if (outcome == ScanOutcome::kMore) return;
  state_ = State::kAfterValue;
  if (outcome == ScanOutcome::kDone) return;
  raw_ = byte;
  after_byte(byte, sink);
}

void PythonCalls::after_byte(char byte, CallSink* sink) {
  if (is_space(byte)) return;
  const bool in_call = state_ == State::kAfterValue;
  if (byte == ',') {
    key_.clear();
    name_.clear();
    state_ = in_call ? State::kArgument : State::kName;
  } else if (in_call && byte == ')') {
    send("}", sink);
    had_call_ = true;
    state_ = State::kAfterCall;
  } else if (!in_call && byte == ']') {
    raw_.clear();
    state_ = State::kClose;
  } else {
    flaw(sink);
  }
}

void PythonCalls::close_byte(CallSink* sink) {
  const size_t begin = raw_.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return;
  const std::string_view seen = std::string_view(raw_).substr(begin);
  if (!format_.close.empty() && format_.close.starts_with(seen)) {
    if (seen != format_.close) return;
    raw_.clear();
    state_ = State::kText;
    at_start_ = false;
    return;
  }
  const std::string rest = std::exchange(raw_, {});
  state_ = State::kText;
  at_start_ = false;
  for (const char again : rest) feed(again, sink);
}

void PythonCalls::flaw(CallSink* sink) {
  const std::string rest = std::exchange(raw_, {});
  const size_t tail = markers_.num_certain(rest.size());
  state_ = State::kText;
  at_start_ = false;
  sink->content(std::string_view(rest).substr(0, tail));
  for (size_t i = tail; i < rest.size(); ++i) feed(rest[i], sink);
}

void PythonCalls::finish(CallSink* sink) {
  const std::string held = markers_.take_held();
  const bool in_call = begun_ && (state_ == State::kArgument || state_ == State::kValue ||
                                  state_ == State::kAfterValue);
  const bool after_call = had_call_ && (state_ == State::kAfterCall || state_ == State::kClose);
  if (state_ == State::kText) {
    sink->content(held);
  } else if (!in_call && !after_call) {
    sink->content(raw_);
  }
  raw_.clear();
  state_ = State::kText;
}

}  // namespace foretoken
