#include "chat/calls/python_calls.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

namespace foretoken {
namespace {

bool is_identifier_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' ||
         static_cast<unsigned char>(byte) >= 0x80;
}

std::vector<std::string> marker_of(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : std::vector<std::string>{text};
}

}  // namespace

PythonCalls::PythonCalls(const Format& format)
    : MarkedCalls({marker_of(format.open), marker_of(format.close), {}}), format_(format) {
  bare_allowed_ = format.bare;
}

void PythonCalls::begin(State state, bool marked) {
  state_ = state;
  name_.clear();
  marked_ = marked;
  begun_ = false;
  had_call_ = false;
}

void PythonCalls::opened(int, CallSink*) {
  begin(format_.lines ? State::kName : State::kList, true);
}

bool PythonCalls::opened_bare(char byte, CallSink*) {
  if (byte != '[' || format_.lines) return false;
  begin(State::kName, false);
  return true;
}

void PythonCalls::inside(char byte, CallSink* sink) {
  switch (state_) {
    case State::kList:
      if (byte == '[') {
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
    case State::kClose:
      return close_byte(sink);
  }
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
  if (had_call_ && byte == ']' && name_.empty() && !format_.lines) {
    held_.clear();
    state_ = State::kClose;
    return;
  }
  if (had_call_ && byte == '<' && name_.empty() && format_.lines) {
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
  held_.clear();
}

void PythonCalls::end_call(CallSink* sink) {
  send("}", sink);
  sink->end_call();
  had_call_ = true;
  name_.clear();
  state_ = format_.lines ? State::kName : State::kAfterCall;
}

void PythonCalls::argument_byte(char byte, CallSink* sink) {
  if (byte == ')' && key_.empty()) {
    return end_call(sink);
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
  held_ = byte;
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
    end_call(sink);
  } else if (!in_call && byte == ']') {
    held_.clear();
    state_ = State::kClose;
  } else {
    flaw(sink);
  }
}

void PythonCalls::close_byte(CallSink* sink) {
  const size_t begin = held_.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return;
  const std::string_view seen = std::string_view(held_).substr(begin);
  if (!format_.close.empty() && format_.close.starts_with(seen)) {
    if (seen == format_.close) leave();
    return;
  }
  give_back(sink);
}

void PythonCalls::flaw(CallSink* sink) {
  const bool has_close = marked_ && !format_.close.empty();
  if ((begun_ || had_call_) && has_close) return pass_over(sink);
  sink->end_call();
  give_back(sink);
}

void PythonCalls::cut(CallSink* sink) {
  sink->end_call();
  return begun_ || had_call_ ? leave() : give_back(sink);
}

}  // namespace foretoken
