#include "chat/calls/nested_calls.h"

#include <utility>

#include "chat/scan/typed_values.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t kMaxOpen = 64;

std::string marked(const char* element) { return std::string("]<]minimax[>[") + element; }

// What may come between calls.
enum Between { kCallOpens, kSectionCloses };

std::vector<std::string> between_calls() {
  return {marked("<invoke name=\""), marked("</tool_call>")};
}

json object_member(const json& object, const std::string& name) {
  return object.is_object() ? object.value(name, json()) : json();
}

json parameters_of_function(const json& tools, const std::string& name) {
  if (!tools.is_array()) return nullptr;
  for (const json& tool : tools) {
    const json function = object_member(tool, "function");
    if (object_member(function, "name") == name) return object_member(function, "parameters");
  }
  return nullptr;
}

json schema_of_element(const json& parent, bool in_list, const std::string& tag) {
  if (in_list) return object_member(parent, "items");
  const json declared = object_member(object_member(parent, "properties"), tag);
  return declared.is_null() ? object_member(parent, "additionalProperties") : declared;
}

std::string quoted_text(const std::string& text) { return "\"" + json_string_part(text) + "\""; }

}  // namespace

NestedCalls::NestedCalls(json tools)
    : MarkedCalls({{marked("<tool_call>")}, {marked("</tool_call>")}, {marked("</invoke>")}}),
      tools_(std::move(tools)),
      expected_({}),
      mark_({marked("")}) {
  bare_allowed_ = false;
}

void NestedCalls::opened(int, CallSink*) {
  begun_ = false;
  expected_ = ExpectScan(between_calls());
  state_ = State::kCalls;
}

void NestedCalls::inside(char byte, CallSink* sink) {
  switch (state_) {
    case State::kCalls:
      return calls_byte(byte, sink);
    case State::kName:
      return name_byte(byte, sink);
    case State::kText:
      return text_byte(byte, sink);
    case State::kTag:
      return tag_byte(byte, sink);
  }
}

void NestedCalls::calls_byte(char byte, CallSink* sink) {
  const int number = expected_.feed(byte);
  if (number == ExpectScan::kMore) return;
  if (number == ExpectScan::kFlaw) return give_back(sink);
  if (number == kSectionCloses) return leave();
  name_.clear();
  state_ = State::kName;
}

void NestedCalls::name_byte(char byte, CallSink* sink) {
  if (byte != '>') {
    name_ += byte;
    return name_.size() > kMaxNameLen ? flaw(sink) : void();
  }
  name_ = name_.substr(0, name_.find('"'));
  if (name_.empty()) return flaw(sink);
  begin_call(sink);
}

void NestedCalls::begin_call(CallSink* sink) {
  sink->begin_call(name_);
  sink->arguments("{");
  held_.clear();
  begun_ = true;
  open_ = {{"invoke", parameters_of_function(tools_, name_), false, true, 0}};
  mark_.take_held();
  value_.clear();
  state_ = State::kText;
}

bool NestedCalls::is_blank() const {
  return value_.find_first_not_of(" \t\r\n") == std::string::npos;
}

// Only white space may stand between elements.
void NestedCalls::text_byte(char byte, CallSink* sink) {
  const bool ended = mark_.feed(byte, &value_) >= 0;
  const bool is_value = !open_.back().has_elements;
  if (!is_value && !is_blank()) return flaw(sink);
  if (is_value && !is_blank() && is_text_only(open_.back().schema)) send_text(sink);
  if (!ended) return;
  tag_.clear();
  state_ = State::kTag;
}

void NestedCalls::send_text(CallSink* sink) {
  sink->arguments((sends_ ? "" : "\"") + json_string_part(std::exchange(value_, {})));
  held_.clear();
  sends_ = true;
}

void NestedCalls::tag_byte(char byte, CallSink* sink) {
  if (tag_.empty() && is_space(byte)) return;
  if (byte != '>') {
    tag_ += byte;
    if (tag_.size() > kMaxNameLen || tag_.front() != '<') flaw(sink);
    return;
  }
  const bool closes = tag_.starts_with("</");
  const std::string name = tag_.size() > 1 ? tag_.substr(closes ? 2 : 1) : std::string();
  state_ = State::kText;
  if (closes && name == "tool_call") return end_call(true, sink);
  if (closes && name == open_.back().tag) {
    return open_.size() > 1 ? end_element(sink) : end_call(false, sink);
  }
  if (closes || name.empty() || sends_ || !is_blank() || open_.size() > kMaxOpen) {
    return flaw(sink);
  }
  begin_element(name, sink);
}

void NestedCalls::begin_element(const std::string& tag, CallSink* sink) {
  Element& parent = open_.back();
  std::string json_text;
  if (!parent.has_elements) {
    const std::set<std::string> types = allowed_types(parent.schema);
    parent.is_list = types.empty() ? tag == "item" : types.count("object") == 0;
    parent.has_elements = true;
    json_text = parent.is_list ? "[" : "{";
  }
  if (parent.num_elements++ > 0) json_text += ", ";
  if (!parent.is_list) json_text += quoted_text(tag) + ": ";
  sink->arguments(json_text);
  held_.clear();
  value_.clear();
  sends_ = false;
  open_.push_back({tag, schema_of_element(parent.schema, parent.is_list, tag), false, false, 0});
}

void NestedCalls::end_element(CallSink* sink) {
  const Element& element = open_.back();
  std::string json_text;
  if (element.has_elements) {
    json_text = element.is_list ? "]" : "}";
  } else if (sends_) {
    json_text = json_string_part(value_) + "\"";
  } else {
    json_text = typed_value(value_, element.schema);
  }
  sink->arguments(json_text);
  held_.clear();
  value_.clear();
  sends_ = false;
  open_.pop_back();
}

void NestedCalls::end_call(bool section_too, CallSink* sink) {
  while (open_.size() > 1) end_element(sink);
  sink->arguments("}");
  sink->end_call();
  held_.clear();
  if (section_too) return leave();
  expected_ = ExpectScan(between_calls());
  state_ = State::kCalls;
}

void NestedCalls::flaw(CallSink* sink) { return begun_ ? pass_over(sink) : give_back(sink); }

// Half of a value that is no text is none.
void NestedCalls::cut(CallSink* sink) {
  const bool in_call = state_ == State::kText || state_ == State::kTag;
  if (in_call && !open_.back().has_elements && sends_) send_text(sink);
  sink->end_call();
  return begun_ ? leave() : give_back(sink);
}

}  // namespace foretoken
