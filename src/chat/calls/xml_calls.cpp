#include "chat/calls/xml_calls.h"

#include <algorithm>
#include <utility>

#include "base/text/ascii_text.h"
#include "chat/scan/typed_values.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view kCdata = "<![CDATA[";

std::string key_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The schema of values of any type.
json any_schema() {
  return {{"type", {"string", "number", "integer", "boolean", "object", "array", "null"}}};
}

std::vector<std::string> without_empty(std::vector<std::string> texts) {
  texts.erase(std::remove(texts.begin(), texts.end(), ""), texts.end());
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

std::vector<std::string> joined_texts(std::vector<std::string> all,
                                      const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return without_empty(std::move(all));
}

std::vector<std::string> openings(const XmlCallFormat& format) {
  std::vector<std::string> open = format.section_open;
  if (format.bare) open.push_back(format.call_open);
  return open;
}

json parameters_of(const json& tools, const std::string& function) {
  if (!tools.is_array()) return nullptr;
  for (const json& tool : tools) {
    if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object()) continue;
    const json& one = tool["function"];
    if (one.value("name", json()) != function) continue;
    const json parameters = one.value("parameters", json());
    const bool named = parameters.is_object() && parameters.contains("properties") &&
                       parameters["properties"].is_object();
    return named ? parameters : json();
  }
  return nullptr;
}

json schema_of(const json& tools, const std::string& function, const std::string& key) {
  const json parameters = parameters_of(tools, function);
  if (parameters.is_null()) return nullptr;
  return followed_schema(parameters["properties"].value(key, json()), parameters);
}

bool has_property(const json& parameters, const std::string& key) {
  return !parameters.is_null() && parameters["properties"].contains(key);
}

}  // namespace

XmlCalls::XmlCalls(XmlCallFormat format, json tools)
    : MarkedCalls({openings(format), format.section_close, without_empty({format.call_close})}),
      format_(std::move(format)),
      tools_(std::move(tools)),
      calls_texts_(
          joined_texts(joined_texts(format_.section_close, format_.fillers), {format_.call_open})),
      body_texts_(joined_texts(joined_texts(format_.section_close, format_.section_open),
                               {format_.key_open, format_.call_close, format_.call_open})),
      expected_(calls_texts_),
      name_end_(format_.name_ends),
      key_end_({format_.key_close}),
      type_end_(without_empty({format_.type_close})),
      value_end_(joined_texts(format_.section_close,
                              {format_.value_close, format_.key_open, format_.call_close})),
      cdata_end_({"]]>" + format_.value_close}) {
  bare_allowed_ = false;
}

bool XmlCalls::is_section_close(const std::string& marker) const {
  const std::vector<std::string>& all = format_.section_close;
  return std::find(all.begin(), all.end(), marker) != all.end();
}

void XmlCalls::opened(int number, CallSink*) {
  begun_ = false;
  in_section_ = static_cast<size_t>(number) < format_.section_open.size();
  return !in_section_ || format_.call_open.empty() ? begin_name() : expect_calls();
}

void XmlCalls::expect_calls() {
  expected_ = ExpectScan(calls_texts_);
  state_ = State::kCalls;
}

void XmlCalls::begin_name() {
  name_.clear();
  name_end_.take_held();
  state_ = State::kName;
}

void XmlCalls::inside(char byte, CallSink* sink) {
  switch (state_) {
    case State::kCalls:
      return calls_byte(byte, sink);
    case State::kName:
      return name_byte(byte, sink);
    case State::kObject:
      return object_byte(byte, sink);
    case State::kObjectEnd:
      return object_end_byte(byte, sink);
    case State::kBody:
      return body_byte(byte, sink);
    case State::kKey:
      return key_byte(byte, sink);
    case State::kValueOpen:
      return value_open_byte(byte, sink);
    case State::kType:
      return type_byte(byte, sink);
    case State::kMaybeCdata:
      return cdata_byte(byte, sink);
    case State::kValue:
      return value_byte(byte, sink);
    case State::kMaybeEnd:
      return maybe_end_byte(byte, sink);
  }
}

void XmlCalls::calls_byte(char byte, CallSink* sink) {
  const int number = expected_.feed(byte);
  if (number == ExpectScan::kMore) return;
  if (number == ExpectScan::kFlaw) return give_back(sink);
  const std::string& text = calls_texts_[static_cast<size_t>(number)];
  if (is_section_close(text)) return leave();
  if (text == format_.call_open) return begin_name();
  expected_ = ExpectScan(calls_texts_);
}

void XmlCalls::name_byte(char byte, CallSink* sink) {
  const int number = name_end_.feed(byte, &name_);
  if (name_.size() > kMaxNameLen) return flaw(sink);
  if (format_.objects && trimmed_text(name_) == "{") return begin_object(sink);
  if (number < 0) return;
  name_ = trimmed_text(name_);
  if (name_.empty() && name_end_.marker(number) == "\n") return;
  if (format_.attributes) name_ = name_.substr(0, name_.find('"'));
  if (name_.empty() || name_.find_first_of(" \t\r\n<{\"") != std::string::npos) return flaw(sink);
  sink->begin_call(name_);
  sink->arguments("{");
  held_.clear();
  begun_ = true;
  num_parameters_ = 0;
  expected_ = ExpectScan(body_texts_);
  state_ = State::kBody;
  const std::string marker = name_end_.marker(number);
  if (marker == format_.key_open || marker == format_.call_close || is_section_close(marker)) {
    replay(marker, sink);
  }
}

void XmlCalls::begin_object(CallSink* sink) {
  object_.emplace(CallObject::Rules{}, sink);
  state_ = State::kObject;
  object_byte('{', sink);
}

void XmlCalls::object_byte(char byte, CallSink* sink) {
  const CallObject::Outcome outcome = object_->feed(byte);
  begun_ = begun_ || object_->begun();
  if (outcome == CallObject::Outcome::kFlaw) return flaw(sink);
  if (outcome == CallObject::Outcome::kHeld) return;
  held_.clear();
  if (outcome != CallObject::Outcome::kEnd) return;
  sink->end_call();
  expected_ = ExpectScan(joined_texts(format_.section_close, {format_.call_close}));
  state_ = State::kObjectEnd;
}

void XmlCalls::object_end_byte(char byte, CallSink* sink) {
  const int number = expected_.feed(byte);
  if (number == ExpectScan::kMore) return;
  if (number == ExpectScan::kFlaw) return flaw(sink);
  const std::string marker = std::exchange(held_, {});
  if (!trimmed_text(marker).starts_with(format_.call_close)) return leave();
  expect_calls();
}

void XmlCalls::replay(const std::string& text, CallSink* sink) {
  for (const char again : text) feed(again, sink);
}

void XmlCalls::end_call(bool section_too, CallSink* sink) {
  sink->arguments("}");
  sink->end_call();
  held_.clear();
  if (section_too) return leave();
  expect_calls();
}

void XmlCalls::body_byte(char byte, CallSink* sink) {
  const int number = expected_.feed(byte);
  if (number == ExpectScan::kMore) return;
  if (number == ExpectScan::kFlaw) return flaw(sink);
  const std::string text = body_texts_[static_cast<size_t>(number)];
  if (text == format_.key_open) {
    key_.clear();
    key_end_.take_held();
    state_ = State::kKey;
  } else if (is_section_close(text) || text == format_.call_close) {
    end_call(is_section_close(text), sink);
  } else {
    // A call or section begins where the last one should have ended.
    end_call(text != format_.call_open, sink);
    replay(text, sink);
  }
}

// By DeepSeek's string="true" or Kimi's type="string" behind a key.
XmlCalls::Kind XmlCalls::declared_kind(std::string_view attributes) {
  const auto has = [&](const char* text) { return attributes.find(text) != std::string::npos; };
  if (has("\"true\"") || has("type=\"string\"")) return Kind::kText;
  return has("\"false\"") || has("type=\"") ? Kind::kJson : Kind::kDeclared;
}

void XmlCalls::key_byte(char byte, CallSink* sink) {
  const bool ended = key_end_.feed(byte, &key_) >= 0;
  if (key_.size() > kMaxNameLen || key_.find('\n') != std::string::npos) return flaw(sink);
  if (!ended) return;
  kind_ = Kind::kDeclared;
  if (format_.attributes) {
    const size_t quote = key_.find('"');
    const std::string more = quote == std::string::npos ? "" : key_.substr(quote + 1);
    kind_ = declared_kind(more);
    key_ = key_.substr(0, quote);
  }
  if (key_.empty() || key_.find('<') != std::string::npos) return flaw(sink);
  if (format_.value_open.empty()) return begin_value(sink);
  expect_value();
}

void XmlCalls::expect_value() {
  std::vector<std::string> next = {format_.value_open};
  if (!format_.type_open.empty()) next.push_back(format_.type_open);
  expected_ = ExpectScan(next);
  state_ = State::kValueOpen;
}

void XmlCalls::value_open_byte(char byte, CallSink* sink) {
  const int number = expected_.feed(byte);
  if (number == ExpectScan::kFlaw) return flaw(sink);
  if (number == 0) return begin_value(sink);
  if (number < 0) return;
  type_.clear();
  type_end_.take_held();
  state_ = State::kType;
}

// What the request declares goes before it.
void XmlCalls::type_byte(char byte, CallSink* sink) {
  const bool ended = type_end_.feed(byte, &type_) >= 0;
  if (type_.size() > kMaxNameLen) return flaw(sink);
  if (!ended) return;
  type_ = trimmed_text(type_);
  const bool declared = !allowed_types(schema_of(tools_, name_, key_)).empty();
  if (!declared && type_ != "any") kind_ = type_ == "string" ? Kind::kText : Kind::kJson;
  expect_value();
}

void XmlCalls::begin_value(CallSink* sink) {
  const json schema = schema_of(tools_, name_, key_);
  const bool typed = !allowed_types(schema).empty();
  text_ = typed ? is_text_only(schema) : !format_.untyped_json;
  if (kind_ != Kind::kDeclared) text_ = kind_ == Kind::kText;
  const json parameters = parameters_of(tools_, name_);
  wraps_ = format_.wrapped && num_parameters_ == 0 && (key_ == "arguments" || key_ == "input") &&
           !parameters.is_null() && !has_property(parameters, key_);
  if (!wraps_) tell_key(sink);
  held_.clear();
  value_.clear();
  value_end_.take_held();
  value_begun_ = false;
  in_cdata_ = false;
  state_ = format_.cdata ? State::kMaybeCdata : State::kValue;
}

void XmlCalls::tell_key(CallSink* sink) {
  sink->arguments((num_parameters_++ > 0 ? ", " : "") + key_text(key_) + (text_ ? ": \"" : ": "));
}

// Whether the value is an object of the tool's parameters, which are told then.
bool XmlCalls::tell_wrapped(CallSink* sink) {
  const json inner = json::parse(trimmed_text(value_), nullptr, false);
  if (!inner.is_object()) return false;
  const json parameters = parameters_of(tools_, name_);
  for (const auto& [key, value] : inner.items()) {
    if (!has_property(parameters, key)) return false;
  }
  for (const auto& [key, value] : inner.items()) {
    sink->arguments((num_parameters_++ > 0 ? ", " : "") + key_text(key) + ": " + key_text(value));
  }
  return true;
}

void XmlCalls::cdata_byte(char byte, CallSink* sink) {
  value_start_ += byte;
  in_cdata_ = value_start_ == kCdata;
  if (!in_cdata_ && kCdata.starts_with(value_start_)) return;
  state_ = State::kValue;
  const std::string start = std::exchange(value_start_, {});
  if (!in_cdata_) replay(start, sink);
}

// One line break behind the key and one before the closing marker belong to the form.
void XmlCalls::add_to_value(std::string text, bool ended, CallSink* sink) {
  if (!value_begun_ && !text.empty()) {
    value_begun_ = true;
    if (format_.line_breaks && text.front() == '\n') text.erase(0, 1);
  }
  value_ += text;
  const bool break_last = format_.line_breaks && value_.ends_with('\n');
  if (ended && break_last) value_.pop_back();
  if (!text_ || wraps_) return;
  const bool keep = !ended && break_last;
  if (keep) value_.pop_back();
  sink->arguments(json_string_part(std::exchange(value_, keep ? "\n" : "")));
}

std::string XmlCalls::other_value() const {
  const json schema = schema_of(tools_, name_, key_);
  const bool any = kind_ == Kind::kJson || (allowed_types(schema).empty() && format_.untyped_json);
  return typed_value(trimmed_text(value_), any ? any_schema() : schema);
}

bool XmlCalls::is_whole_value() const {
  if (!other_value().starts_with('"')) return true;
  const bool any = format_.untyped_json && allowed_types(schema_of(tools_, name_, key_)).empty();
  return any &&
         std::string_view("{[\"").find((trimmed_text(value_) + "\"").front()) == std::string::npos;
}

void XmlCalls::end_value(CallSink* sink) {
  add_to_value("", true, sink);
  if (!wraps_) {
    sink->arguments(text_ ? "\"" : other_value());
  } else if (!tell_wrapped(sink)) {
    tell_key(sink);
    sink->arguments(text_ ? json_string_part(value_) + "\"" : other_value());
  }
  wraps_ = false;
  held_.clear();
  value_.clear();
  expected_ = ExpectScan(body_texts_);
  state_ = State::kBody;
}

void XmlCalls::value_byte(char byte, CallSink* sink) {
  held_.clear();
  std::string text;
  const int number = value_end().feed(byte, &text);
  add_to_value(std::move(text), false, sink);
  if (number < 0) return;
  if (in_cdata_) return end_value(sink);
  const std::string marker = value_end_.marker(number);
  if (marker == format_.value_close) return end_value(sink);
  if (marker == format_.key_open || !in_section_) {
    end_value(sink);
    return replay(marker, sink);
  }
  end_marker_ = marker;
  // A call's end shows itself by what follows; a section's by the next one, or the end of all.
  std::vector<std::string> next = format_.section_open;
  if (!is_section_close(marker)) next = joined_texts(next, calls_texts_);
  expected_ = ExpectScan(next);
  state_ = State::kMaybeEnd;
}

void XmlCalls::maybe_end_byte(char byte, CallSink* sink) {
  const int number = expected_.feed(byte);
  if (number == ExpectScan::kMore) return;
  if (number == ExpectScan::kFlaw) return no_end(sink);
  const std::string rest = std::exchange(held_, {});
  end_value(sink);
  replay(end_marker_ + rest, sink);
}

// The marker is part of the value.
void XmlCalls::no_end(CallSink* sink) {
  const std::string rest = std::exchange(held_, {});
  state_ = State::kValue;
  add_to_value(end_marker_, false, sink);
  replay(rest, sink);
}

void XmlCalls::flaw(CallSink* sink) {
  if (begun_) return pass_over(sink);
  give_back(sink);
}

// A text that is cut off ends there, without what may be the beginning of a marker. Half of another
// value is none.
void XmlCalls::cut(CallSink* sink) {
  if (state_ == State::kMaybeCdata) state_ = State::kValue;
  if (state_ == State::kValue) {
    const std::string held = value_end().take_held();
    if (held.size() == 1) add_to_value(held, false, sink);
  }
  const bool whole = state_ == State::kMaybeEnd || text_ || is_whole_value();
  if ((state_ == State::kValue && whole) || state_ == State::kMaybeEnd) end_value(sink);
  sink->end_call();
  return begun_ ? leave() : give_back(sink);
}

}  // namespace foretoken
