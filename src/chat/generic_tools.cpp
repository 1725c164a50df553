#include "chat/generic_tools.h"

#include <string>
#include <utility>

#include "base/files/json_object.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// A text, or the texts of a list of parts.
std::string text_of(const json& message) {
  const json content = message.value("content", json());
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (const json& part : content) {
    const json one = part.is_object() ? part.value("text", json()) : json();
    if (one.is_string()) text += one.get<std::string>();
  }
  return text;
}

std::string description_of(const json& tools) {
  std::string text =
      "You can use the tools that are listed here, one JSON object a line, with the JSON schema of "
      "their parameters:\n";
  for (const json& tool : tools) text += dump(tool.value("function", tool)) + "\n";
  return text +
         "To use a tool, answer with its name and arguments as one JSON object between two tags, "
         "like this:\n<tool_call>{\"name\": \"the tool\", \"arguments\": {\"a parameter\": \"its "
         "value\"}}</tool_call>\nSeveral tools are several such lines. What a tool returns comes "
         "between <tool_response> and </tool_response>. When no tool is needed, answer as usual.";
}

std::string text_of_call(const json& call) {
  const json function = call.is_object() ? call.value("function", json::object()) : json::object();
  json arguments = function.value("arguments", json::object());
  if (arguments.is_string()) {
    json parsed = parsed_ordered_json(arguments.get<std::string>());
    if (!parsed.is_discarded()) arguments = std::move(parsed);
  }
  if (arguments.is_null() || arguments == "") arguments = json::object();
  const json shown = {{"name", function.value("name", json())}, {"arguments", arguments}};
  return "<tool_call>" + dump(shown) + "</tool_call>";
}

json without_calls(const json& message) {
  std::string text = text_of(message);
  for (const json& call : message["tool_calls"]) {
    text += (text.empty() ? "" : "\n") + text_of_call(call);
  }
  json plain = message;
  plain.erase("tool_calls");
  plain["content"] = text;
  return plain;
}

bool has_calls(const json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

bool is_result(const json& message) {
  return message.value("role", json()) == "tool" || message.value("role", json()) == "function";
}

// Results of one turn are one message: many templates want user and assistant to take turns.
void add_result(const json& message, bool goes_on, json* messages) {
  const std::string text = "<tool_response>" + text_of(message) + "</tool_response>";
  if (goes_on) {
    json& before = messages->back();
    before["content"] = before["content"].get<std::string>() + "\n" + text;
    return;
  }
  messages->push_back({{"role", "user"}, {"content", text}});
}

void add_description(const json& tools, json* messages) {
  const std::string text = description_of(tools);
  json& first = messages->front();
  const json role = first.value("role", json());
  if (role == "system" || role == "developer") {
    first["content"] = text_of(first) + "\n\n" + text;
    return;
  }
  messages->insert(messages->begin(), json{{"role", "system"}, {"content", text}});
}

}  // namespace

json with_generic_tools(const json& messages, const json& tools) {
  json plain = json::array();
  bool after_result = false;
  for (const json& message : messages) {
    const bool result = is_result(message);
    if (result) {
      add_result(message, after_result, &plain);
    } else {
      plain.push_back(has_calls(message) ? without_calls(message) : message);
    }
    after_result = result;
  }
  if (tools.is_array() && !tools.empty() && !plain.empty()) add_description(tools, &plain);
  return plain;
}

bool holds_calls(const json& messages) {
  for (const json& message : messages) {
    if (has_calls(message) || is_result(message)) return true;
  }
  return false;
}

}  // namespace foretoken
