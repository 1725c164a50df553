#include "chat/calls/json_calls.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

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

std::vector<std::string> strays(const JsonCallFormat& format) {
  return format.close.empty() ? std::vector<std::string>() : std::vector<std::string>{format.close};
}

}  // namespace

JsonCalls::JsonCalls(const JsonCallFormat& format)
    : MarkedCalls({format.open, strays(format), {}}), format_(format) {
  bare_allowed_ = format.bare;
}

void JsonCalls::opened(int number, CallSink*) {
  marked_ = true;
  had_item_ = false;
  in_list_ = format_.open[static_cast<size_t>(number)].ends_with('[');
  state_ = in_list_ ? State::kNextItem : State::kForm;
}

bool JsonCalls::opened_bare(char byte, CallSink* sink) {
  const bool opens = (byte == '{' && format_.single) || (byte == '[' && format_.list);
  if (!format_.bare || !opens) return false;
  marked_ = false;
  had_item_ = false;
  form_byte(byte, sink);
  return true;
}

void JsonCalls::inside(char byte, CallSink* sink) {
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
    case State::kClose:
      return close_byte(byte, sink);
  }
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
  rules.key_is_name = format_.key_is_name;
  object_.emplace(rules, sink);
  state_ = State::kObject;
  object_byte(byte, sink);
}

void JsonCalls::object_byte(char byte, CallSink* sink) {
  switch (object_->feed(byte)) {
    case CallObject::Outcome::kHeld:
      return;
    case CallObject::Outcome::kSent:
      held_.clear();
      return;
    case CallObject::Outcome::kEnd:
      return end_item(sink);
    case CallObject::Outcome::kFlaw:
      return flaw(sink);
  }
}

void JsonCalls::end_item(CallSink* sink) {
  sink->end_call();
  held_.clear();
  had_item_ = true;
  state_ = in_list_ ? State::kAfterItem : State::kClose;
}

void JsonCalls::list_byte(char byte, CallSink* sink) {
  if (is_space(byte)) return;
  if (state_ == State::kNextItem && byte == '{') return begin_object(byte, sink);
  if (state_ == State::kAfterItem && byte == ',') {
    state_ = State::kNextItem;
  } else if (byte == ']' && (state_ == State::kAfterItem || had_item_)) {
    held_.clear();
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
  had_item_ = true;
  args_ = JsonScan();
  state_ = State::kArgs;
  args_byte(byte, sink);
}

void JsonCalls::args_byte(char byte, CallSink* sink) {
  const ScanOutcome outcome = args_.feed(byte);
  if (outcome == ScanOutcome::kFlaw) return flaw(sink);
  sink->arguments(json_byte(byte, args_.in_string()));
  held_.clear();
  if (outcome == ScanOutcome::kDone) end_item(sink);
}

void JsonCalls::close_byte(char byte, CallSink* sink) {
  const size_t begin = held_.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return;
  const std::string_view seen = std::string_view(held_).substr(begin);
  if (!format_.close.empty() && format_.close.starts_with(seen)) {
    if (seen == format_.close) leave();
    return;
  }
  if (has_close()) {
    const bool another = format_.single && !in_list_ && seen == "{";
    return another ? begin_object(byte, sink) : pass_over(sink);
  }
  const bool more = format_.bare && !in_list_;
  if (more && seen.size() == 1 && format_.separators.find(byte) != std::string::npos) {
    state_ = State::kForm;
    return;
  }
  const std::string rest = held_;
  leave();
  bare_allowed_ = more;
  for (const char again : rest) feed(again, sink);
}

void JsonCalls::flaw(CallSink* sink) {
  const bool begun = had_item_ || (state_ == State::kObject && object_->begun());
  if (begun && has_close()) return pass_over(sink);
  sink->end_call();
  give_back(sink);
}

// What is left of the form around a call is no text.
void JsonCalls::cut(CallSink* sink) {
  const bool in_object = state_ == State::kObject && !object_->begun();
  const bool begun = had_item_ || (state_ == State::kObject && object_->begun());
  sink->end_call();
  return format_.forced || (begun && !in_object) ? leave() : give_back(sink);
}

}  // namespace foretoken
