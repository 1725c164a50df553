#include "chat/json_calls.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

constexpr size_t kMaxNameLen = 256;
bool is_name_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || std::string_view("_-.:/").find(byte) != std::string::npos;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_name_byte);
}

// The name in "name", "name[ARGS]" or "name[CALL_ID]id[ARGS]"; empty where it is none of them.
std::string name_of(std::string_view head) {
  constexpr std::string_view kArgs = "[ARGS]";
  constexpr std::string_view kCallId = "[CALL_ID]";
  while (!head.empty() && is_space(head.back())) head.remove_suffix(1);
  if (head.ends_with(kArgs)) head.remove_suffix(kArgs.size());
  const size_t call_id = head.find(kCallId);
  if (call_id != std::string_view::npos) {
    if (!is_name(head.substr(call_id + kCallId.size()))) return {};
    head = head.substr(0, call_id);
  }
  return is_name(head) ? std::string(head) : std::string();
}

}  // namespace

JsonCalls::JsonCalls(const JsonCallFormat& format)
    : format_(format), markers_(format.open), bare_allowed_(format.bare) {}

void JsonCalls::feed(char byte, CallSink* sink) {
  if (state_ == State::kText) return text_byte(byte, sink);
  raw_ += byte;
  switch (state_) {
    case State::kForm:
      return form_byte(byte, sink);
    case State::kObject:
      return object_byte(byte, sink);
    case State::kAfterItem:
    case State::kNextItem:
      return list_byte(byte, sink);
    case State::kName:
      return name_byte(byte, sink);
    case State::kArgs:
      return args_byte(byte, sink);
    default:
      return close_byte(byte, sink);
  }
}

void JsonCalls::text_byte(char byte, CallSink* sink) {
  const bool opens = (byte == '{' && format_.single) || (byte == '[' && format_.list);
  // A marker that begins with the bracket goes first; its flaw comes back here.
  std::string text;
  const int number = markers_.feed(byte, &text);
  if (number >= 0) {
    sink->content(text);
    raw_ = markers_.marker(number);
    marked_ = true;
    had_item_ = false;
    state_ = State::kForm;
    return;
  }
  if (bare_allowed_ && opens && text == std::string(1, byte)) {
    raw_ = byte;
    marked_ = false;
    had_item_ = false;
    return form_byte(byte, sink);
  }
  if (text.find_first_not_of(" \t\r\n") != std::string::npos) bare_allowed_ = false;
  sink->content(text);
}

void JsonCalls::form_byte(char byte, CallSink* sink) {
  if ((marked_ || had_item_) && is_space(byte)) return;
  in_list_ = byte == '[' && format_.list;
  if (in_list_) {
    state_ = State::kNextItem;
  } else if (byte == '{' && format_.single) {
    begin_object(byte, sink);
  } else if (format_.named && is_name_byte(byte)) {
    name_ = byte;
    state_ = State::kName;
  } else {
    flaw(sink);
  }
}

void JsonCalls::begin_object(char byte, CallSink* sink) {
  CallObject::Rules rules;
  rules.needs_arguments = !marked_;
  rules.needs_known_name = !marked_ && format_.needs_known_name;
  object_.emplace(rules, sink);
  state_ = State::kObject;
  object_byte(byte, sink);
}

void JsonCalls::object_byte(char byte, CallSink* sink) {
  switch (object_->feed(byte)) {
    case CallObject::Outcome::kHeld:
      return;
    case CallObject::Outcome::kSent:
      raw_.clear();
      return;
    case CallObject::Outcome::kEnd:
      return end_item();
    case CallObject::Outcome::kFlaw:
      return flaw(sink);
  }
}

void JsonCalls::end_item() {
  raw_.clear();
  had_item_ = true;
  state_ = in_list_ ? State::kAfterItem : State::kClose;
}

void JsonCalls::list_byte(char byte, CallSink* sink) {
  if (is_space(byte)) return;
  if (state_ == State::kNextItem && byte == '{') return begin_object(byte, sink);
  if (state_ == State::kAfterItem && byte == ',') {
    state_ = State::kNextItem;
  } else if (state_ == State::kAfterItem && byte == ']') {
    raw_.clear();
    state_ = State::kClose;
  } else {
    flaw(sink);
  }
}

void JsonCalls::name_byte(char byte, CallSink* sink) {
  if (byte != '{') {
    name_ += byte;
    const bool fits = is_name_byte(byte) || is_space(byte) || byte == '[' || byte == ']';
    if (!fits || name_.size() > kMaxNameLen) flaw(sink);
    return;
  }
  const std::string name = name_of(name_);
  if (name.empty()) return flaw(sink);
  sink->begin_call(name);
  args_ = JsonScan();
  state_ = State::kArgs;
  args_byte(byte, sink);
}

void JsonCalls::args_byte(char byte, CallSink* sink) {
  const ScanOutcome outcome = args_.feed(byte);
  if (outcome == ScanOutcome::kFlaw) return flaw(sink);
  sink->arguments(json_byte(byte, args_.in_string()));
  raw_.clear();
  if (outcome == ScanOutcome::kDone) end_item();
}

void JsonCalls::close_byte(char byte, CallSink* sink) {
  const size_t begin = raw_.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return;
  const std::string_view seen = std::string_view(raw_).substr(begin);
  if (!format_.close.empty() && format_.close.starts_with(seen)) {
    if (seen == format_.close) {
      raw_.clear();
      state_ = State::kText;
      bare_allowed_ = false;
    }
    return;
  }
  state_ = State::kText;
  bare_allowed_ = format_.bare && !in_list_;
  const bool separates = seen.size() == 1 && format_.separators.find(byte) != std::string::npos;
  std::string rest = std::exchange(raw_, {});
  if (bare_allowed_ && separates) {
    raw_ = rest;
    state_ = State::kForm;
    return;
  }
  for (const char again : rest) feed(again, sink);
}

// What was held is content; only its tail may be the beginning of a marker.
void JsonCalls::flaw(CallSink* sink) {
  const std::string rest = std::exchange(raw_, {});
  const size_t tail = markers_.num_certain(rest.size());
  state_ = State::kText;
  bare_allowed_ = false;
  sink->content(std::string_view(rest).substr(0, tail));
  for (size_t i = tail; i < rest.size(); ++i) feed(rest[i], sink);
}

void JsonCalls::finish(CallSink* sink) {
  const std::string held = markers_.take_held();
  // What is left of the form behind a call is no text.
  const bool after_call = state_ == State::kClose || state_ == State::kArgs ||
                          (state_ == State::kObject && object_->begun()) ||
                          (had_item_ && state_ != State::kText && state_ != State::kObject);
  if (state_ == State::kText) {
    sink->content(held);
  } else if (!after_call) {
    sink->content(raw_);
  }
  raw_.clear();
  state_ = State::kText;
}

}  // namespace foretoken
