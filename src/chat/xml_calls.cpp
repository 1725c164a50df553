#include "chat/xml_calls.h"

#include <algorithm>
#include <set>
#include <utility>

#include "chat/json_scan.h"
#include "chat/python_scan.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t kMaxNameLen = 256;

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

XmlCalls::XmlCalls(json tools)
    : tools_(std::move(tools)),
      markers_({"<tool_call>", "<function="}),
      function_({"<function="}),
      body_({"<parameter=", "</function>"}),
      close_({"</tool_call>"}),
      value_end_({"</parameter>"}) {}

void XmlCalls::feed(char byte, CallSink* sink) {
  if (state_ == State::kText) return text_byte(byte, sink);
  raw_ += byte;
  switch (state_) {
    case State::kOpened: {
      const int number = function_.feed(byte);
      if (number == ExpectScan::kFlaw) return flaw(sink);
      if (number >= 0) state_ = State::kName;
      return;
    }
    case State::kName:
      return name_byte(byte, sink);
    case State::kBody:
      return body_byte(byte, sink);
    case State::kKey:
      return key_byte(byte, sink);
    case State::kString:
    case State::kOther:
      return value_byte(byte, sink);
    default:
      return close_byte(byte, sink);
  }
}

void XmlCalls::text_byte(char byte, CallSink* sink) {
  std::string text;
  const int number = markers_.feed(byte, &text);
  sink->content(text);
  if (number < 0) return;
  raw_ = markers_.marker(number);
  begun_ = false;
  name_.clear();
  function_ = ExpectScan({"<function="});
  state_ = number == 0 ? State::kOpened : State::kName;
}

void XmlCalls::name_byte(char byte, CallSink* sink) {
  if (byte != '>') {
    name_ += byte;
    const bool fits = !is_space(byte) && byte != '<' && name_.size() <= kMaxNameLen;
    return fits ? void() : flaw(sink);
  }
  if (name_.empty()) return flaw(sink);
  sink->begin_call(name_);
  sink->arguments("{");
  raw_.clear();
  begun_ = true;
  num_parameters_ = 0;
  body_ = ExpectScan({"<parameter=", "</function>"});
  state_ = State::kBody;
}

void XmlCalls::body_byte(char byte, CallSink* sink) {
  const int number = body_.feed(byte);
  if (number == ExpectScan::kFlaw) return flaw(sink);
  if (number == 0) {
    key_.clear();
    state_ = State::kKey;
  } else if (number == 1) {
    sink->arguments("}");
    raw_.clear();
    close_ = ExpectScan({"</tool_call>"});
    state_ = State::kClose;
  }
}

void XmlCalls::key_byte(char byte, CallSink* sink) {
  if (byte != '>') {
    key_ += byte;
    const bool fits = byte != '<' && byte != '\n' && key_.size() <= kMaxNameLen;
    return fits ? void() : flaw(sink);
  }
  const bool text = is_text_only(schema_of(tools_, name_, key_));
  sink->arguments((num_parameters_++ > 0 ? ", " : "") + dump(key_) + (text ? ": \"" : ": "));
  raw_.clear();
  value_.clear();
  value_begun_ = false;
  state_ = text ? State::kString : State::kOther;
}

void XmlCalls::send_string(std::string text, CallSink* sink) { sink->arguments(escaped(text)); }

void XmlCalls::send_other(CallSink* sink) {
  sink->arguments(typed_value(value_, schema_of(tools_, name_, key_)));
}

// One line break after the opening and one before the closing tag belong to the form.
void XmlCalls::value_byte(char byte, CallSink* sink) {
  raw_.clear();
  std::string text;
  const bool ended = value_end_.feed(byte, &text) >= 0;
  if (!value_begun_ && !text.empty()) {
    value_begun_ = true;
    if (text.front() == '\n') text.erase(0, 1);
  }
  value_ += text;
  const bool break_last = value_.ends_with('\n');
  if (ended && break_last) value_.pop_back();
  if (state_ == State::kString) {
    const bool keep = !ended && break_last;
    if (keep) value_.pop_back();
    send_string(std::exchange(value_, keep ? "\n" : ""), sink);
  }
  if (!ended) return;
  if (state_ == State::kString) {
    sink->arguments("\"");
  } else {
    send_other(sink);
  }
  value_.clear();
  body_ = ExpectScan({"<parameter=", "</function>"});
  state_ = State::kBody;
}

void XmlCalls::close_byte(char byte, CallSink* sink) {
  const int number = close_.feed(byte);
  if (number == ExpectScan::kMore) return;
  state_ = State::kText;
  const std::string rest = std::exchange(raw_, {});
  if (number >= 0) return;
  for (const char again : rest) feed(again, sink);
}

void XmlCalls::flaw(CallSink* sink) {
  const std::string rest = std::exchange(raw_, {});
  const size_t tail = markers_.num_certain(rest.size());
  state_ = State::kText;
  sink->content(std::string_view(rest).substr(0, tail));
  for (size_t i = tail; i < rest.size(); ++i) feed(rest[i], sink);
}

void XmlCalls::finish(CallSink* sink) {
  const std::string held = markers_.take_held();
  if (state_ == State::kText) {
    sink->content(held);
  } else if (state_ == State::kString) {
    send_string(value_ + value_end_.take_held(), sink);
  } else if (state_ == State::kOther) {
    value_ += value_end_.take_held();
    if (!value_.empty()) send_other(sink);
  } else if (!begun_) {
    sink->content(raw_);
  }
  raw_.clear();
  state_ = State::kText;
}

}  // namespace foretoken
