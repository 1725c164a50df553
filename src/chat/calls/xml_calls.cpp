#include "chat/calls/xml_calls.h"

#include <algorithm>
#include <set>
#include <utility>

#include "chat/scan/json_scan.h"
#include "chat/scan/python_scan.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string type_of(const json& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  return value.is_string() ? "string" : value.type_name();
}

// The names of the types that a schema allows; none: any.
std::set<std::string> allowed_types(const json& schema) {
  std::set<std::string> types;
  if (!schema.is_object()) return types;
  const json type = schema.value("type", json());
  if (type.is_string()) types.insert(type.get<std::string>());
  if (type.is_array()) {
    for (const json& one : type) types.insert(one.is_string() ? one.get<std::string>() : "");
  }
  for (const char* name : {"anyOf", "oneOf"}) {
    const json members = schema.value(name, json::array());
    if (!members.is_array()) continue;
    for (const json& member : members) types.merge(allowed_types(member));
  }
  const json values = schema.value("enum", json::array());
  if (types.empty() && values.is_array()) {
    for (const json& value : values) types.insert(type_of(value));
  }
  return types;
}

bool is_text_only(const json& schema) {
  const std::set<std::string> types = allowed_types(schema);
  return types.empty() || types == std::set<std::string>{"string"};
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

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

std::vector<std::string> openings(const XmlCallFormat& format) {
  std::vector<std::string> open = format.section_open;
  if (format.bare) open.push_back(format.call_open);
  return open;
}

json schema_of(const json& tools, const std::string& function, const std::string& key) {
  if (!tools.is_array()) return nullptr;
  for (const json& tool : tools) {
    if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object()) continue;
    const json& one = tool["function"];
    if (one.value("name", json()) != function) continue;
    const json pointer = one.value("parameters", json());
    if (!pointer.is_object() || !pointer.contains("properties")) return nullptr;
    const json& properties = pointer["properties"];
    return properties.is_object() ? properties.value(key, json()) : json();
  }
  return nullptr;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') out += '\\';
    out += json_byte(byte, true);
  }
  return out;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char byte) {
    return static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
  });
  return text;
}

}  // namespace

std::string typed_value(const std::string& text, const json& schema) {
  if (is_text_only(schema)) return dump(text);
  const std::set<std::string> types = allowed_types(schema);
  const std::string small = lower(text);
  const bool word = small == "true" || small == "false" || small == "null";
  json value = json::parse(word ? small : text, nullptr, false);
  if (value.is_discarded()) value = json::parse(python_as_json(text), nullptr, false);
  if (value.is_discarded()) return dump(text);
  const std::string type = type_of(value);
  const bool listed = types.count(type) > 0 || (type == "integer" && types.count("number") > 0);
  return listed || types.count("string") == 0 ? dump(value) : dump(text);
}

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
      value_end_(joined_texts(format_.section_close,
                              {format_.value_close, format_.key_open, format_.call_close})) {
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
    case State::kBody:
      return body_byte(byte, sink);
    case State::kKey:
      return key_byte(byte, sink);
    case State::kValueOpen: {
      const int number = expected_.feed(byte);
      if (number == ExpectScan::kFlaw) return flaw(sink);
      if (number >= 0) begin_value(sink);
      return;
    }
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
  if (number < 0) return;
  name_ = trimmed(name_);
  if (name_.empty() && name_end_.marker(number) == "\n") return;
  if (format_.attributes && name_.ends_with('"')) name_.pop_back();
  if (name_.empty() || name_.find_first_of(" \t\r\n<{\"") != std::string::npos) return flaw(sink);
  sink->begin_call(name_);
  sink->arguments("{");
  held_.clear();
  begun_ = true;
  num_parameters_ = 0;
  expected_ = ExpectScan(body_texts_);
  state_ = State::kBody;
  const std::string marker = name_end_.marker(number);
  if (marker == format_.key_open || is_section_close(marker)) replay(marker, sink);
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

void XmlCalls::key_byte(char byte, CallSink* sink) {
  const bool ended = key_end_.feed(byte, &key_) >= 0;
  if (key_.size() > kMaxNameLen || key_.find('\n') != std::string::npos) return flaw(sink);
  if (!ended) return;
  kind_ = Kind::kDeclared;
  if (format_.attributes) {
    const size_t quote = key_.find('"');
    const std::string more = quote == std::string::npos ? "" : key_.substr(quote + 1);
    if (more.find("\"true\"") != std::string::npos) kind_ = Kind::kText;
    if (more.find("\"false\"") != std::string::npos) kind_ = Kind::kJson;
    key_ = key_.substr(0, quote);
  }
  if (key_.empty() || key_.find('<') != std::string::npos) return flaw(sink);
  if (format_.value_open.empty()) return begin_value(sink);
  expected_ = ExpectScan({format_.value_open});
  state_ = State::kValueOpen;
}

void XmlCalls::begin_value(CallSink* sink) {
  const json schema = schema_of(tools_, name_, key_);
  const bool typed = !allowed_types(schema).empty();
  text_ = typed ? is_text_only(schema) : !format_.untyped_json;
  if (kind_ != Kind::kDeclared) text_ = kind_ == Kind::kText;
  sink->arguments((num_parameters_++ > 0 ? ", " : "") + dump(key_) + (text_ ? ": \"" : ": "));
  held_.clear();
  value_.clear();
  value_end_.take_held();
  value_begun_ = false;
  state_ = State::kValue;
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
  if (!text_) return;
  const bool keep = !ended && break_last;
  if (keep) value_.pop_back();
  sink->arguments(escaped(std::exchange(value_, keep ? "\n" : "")));
}

std::string XmlCalls::other_value() const {
  const json schema = schema_of(tools_, name_, key_);
  const bool any = kind_ == Kind::kJson || (allowed_types(schema).empty() && format_.untyped_json);
  return typed_value(trimmed(value_), any ? any_schema() : schema);
}

bool XmlCalls::is_whole_value() const {
  if (!other_value().starts_with('"')) return true;
  const bool any = format_.untyped_json && allowed_types(schema_of(tools_, name_, key_)).empty();
  return any &&
         std::string_view("{[\"").find((trimmed(value_) + "\"").front()) == std::string::npos;
}

void XmlCalls::end_value(CallSink* sink) {
  add_to_value("", true, sink);
  sink->arguments(text_ ? "\"" : other_value());
  held_.clear();
  value_.clear();
  expected_ = ExpectScan(body_texts_);
  state_ = State::kBody;
}

void XmlCalls::value_byte(char byte, CallSink* sink) {
  held_.clear();
  std::string text;
  const int number = value_end_.feed(byte, &text);
  add_to_value(std::move(text), false, sink);
  if (number < 0) return;
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
  if (state_ == State::kValue) {
    const std::string held = value_end_.take_held();
    if (held.size() == 1) add_to_value(held, false, sink);
  }
  const bool whole = state_ == State::kMaybeEnd || text_ || is_whole_value();
  if ((state_ == State::kValue && whole) || state_ == State::kMaybeEnd) end_value(sink);
  sink->end_call();
  return begun_ ? leave() : give_back(sink);
}

}  // namespace foretoken
