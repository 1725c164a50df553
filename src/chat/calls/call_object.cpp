#include "chat/calls/call_object.h"

#include "chat/scan/marker_scan.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

// Arguments that are whole: an object, null, or a string that holds an object, since some models
// encode twice, or nothing. Empty for anything else.
std::string whole_arguments(const std::string& text) {
  const ordered_json value = ordered_json::parse(text, nullptr, false);
  if (value.is_null()) return "{}";
  if (!value.is_string()) return value.is_object() ? text : std::string();
  const std::string inner = value.get<std::string>();
  if (inner.find_first_not_of(" \t\r\n") == std::string::npos) return "{}";
  return ordered_json::parse(inner, nullptr, false).is_object() ? inner : std::string();
}

}  // namespace

bool CallObject::may_begin() const {
  return !name_.empty() && (!rules_.needs_known_name || sink_->knows(name_));
}

void CallObject::begin() {
  if (!begun_) sink_->begin_call(name_);
  begun_ = true;
}

CallObject::Outcome CallObject::feed(char byte) {
  switch (state_) {
    case State::kInKey:
      return key_byte(byte);
    case State::kValue:
      return value_byte(byte);
    default:
      return structure(byte);
  }
}

CallObject::Outcome CallObject::structure(char byte) {
  if (state_ == State::kOpen) {
    state_ = State::kFirstKey;
    return byte == '{' ? Outcome::kHeld : Outcome::kFlaw;
  }
  if (is_space(byte)) return Outcome::kHeld;
  if (state_ == State::kColon) {
    state_ = State::kValue;
    scan_ = JsonScan();
    text_.clear();
    return byte == ':' ? Outcome::kHeld : Outcome::kFlaw;
  }
  if (byte == '}' && state_ != State::kKey) return end_object();
  if (state_ == State::kAfter) {
    state_ = State::kKey;
    return byte == ',' ? Outcome::kHeld : Outcome::kFlaw;
  }
  if (byte != '"') return Outcome::kFlaw;
  state_ = State::kInKey;
  text_ = byte;
  scan_ = JsonScan();
  scan_.feed(byte);
  return Outcome::kHeld;
}

CallObject::Outcome CallObject::key_byte(char byte) {
  const ScanOutcome outcome = scan_.feed(byte);
  text_ += json_byte(byte, scan_.in_string());
  if (outcome == ScanOutcome::kFlaw) return Outcome::kFlaw;
  if (outcome == ScanOutcome::kMore) return Outcome::kHeld;
  const ordered_json key = ordered_json::parse(text_, nullptr, false);
  member_ = Member::kOther;
  if (key == "name" || key == "tool_name") member_ = Member::kName;
  if (key == "arguments" || key == "parameters" || key == "args") member_ = Member::kArguments;
  if (rules_.key_is_name && !has_arguments_ && key.is_string()) {
    name_ = key.get<std::string>();
    member_ = name_.empty() ? Member::kOther : Member::kArguments;
    state_ = State::kColon;
    return Outcome::kHeld;
  }
  const bool twice = (member_ == Member::kName && !name_.empty()) ||
                     (member_ == Member::kArguments && has_arguments_);
  state_ = State::kColon;
  return twice ? Outcome::kFlaw : Outcome::kHeld;
}

CallObject::Outcome CallObject::value_byte(char byte) {
  const bool first = !scan_.begun() && !is_space(byte);
  const ScanOutcome outcome = scan_.feed(byte);
  if (outcome == ScanOutcome::kFlaw) return Outcome::kFlaw;
  if (outcome == ScanOutcome::kDoneBefore) {
    const Outcome ended = end_value();
    if (ended == Outcome::kFlaw) return ended;
    const Outcome next = structure(byte);
    return next == Outcome::kHeld ? ended : next;
  }
  if (!scan_.begun() && outcome == ScanOutcome::kMore) return Outcome::kHeld;
  if (first && member_ == Member::kArguments && byte == '{' && may_begin()) begin();
  const std::string repaired = json_byte(byte, scan_.in_string());
  const bool streams = begun_ && member_ == Member::kArguments && !has_arguments_;
  if (streams) {
    sink_->arguments(repaired);
  } else if (member_ != Member::kOther) {
    text_ += repaired;
  }
  if (outcome == ScanOutcome::kDone) return end_value();
  return streams ? Outcome::kSent : Outcome::kHeld;
}

CallObject::Outcome CallObject::end_value() {
  state_ = State::kAfter;
  if (member_ == Member::kOther) return Outcome::kHeld;
  if (member_ == Member::kName) return set_name();
  has_arguments_ = true;
  if (begun_) return Outcome::kSent;
  arguments_ = whole_arguments(text_);
  if (arguments_.empty()) return Outcome::kFlaw;
  if (name_.empty()) return Outcome::kHeld;
  if (!may_begin()) return Outcome::kFlaw;
  begin();
  sink_->arguments(arguments_);
  return Outcome::kSent;
}

CallObject::Outcome CallObject::set_name() {
  const ordered_json name = ordered_json::parse(text_, nullptr, false);
  if (!name.is_string() || name.get_ref<const std::string&>().empty()) return Outcome::kFlaw;
  name_ = name.get<std::string>();
  if (!may_begin()) return Outcome::kFlaw;
  if (!has_arguments_) return Outcome::kHeld;
  begin();
  sink_->arguments(arguments_);
  return Outcome::kSent;
}

CallObject::Outcome CallObject::end_object() {
  if (begun_) return Outcome::kEnd;
  if (!may_begin() || rules_.needs_arguments) return Outcome::kFlaw;
  begin();
  sink_->arguments("{}");
  return Outcome::kEnd;
}

}  // namespace foretoken
