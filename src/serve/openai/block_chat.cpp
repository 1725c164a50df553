#include "serve/openai/block_chat.h"

#include <algorithm>
#include <string>
#include <utility>

#include "serve/fields/member_text.h"
#include "serve/fields/request_body.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

json type_of(const json& object) {
  return object.is_object() ? object.value("type", json()) : json();
}

bool is_call_block(const json& block) {
  const json type = type_of(block);
  return type == "tool_use" || type == "tool_result";
}

// Parts of text as one; what is no text is shown as JSON, pictures and files by their type.
json text_of_result(const json& content) {
  if (content.is_string() || content.is_null()) return content.is_null() ? json("") : content;
  if (!content.is_array()) return json_text(content);
  std::string text;
  for (const json& part : content) {
    const json type = type_of(part);
    if (type == "image" || type == "document") {
      text += unread_part(type.get<std::string>());
      continue;
    }
    const json said = part.is_object() ? part.value("text", json()) : part;
    text += said.is_string() ? said.get<std::string>() : json_text(part);
  }
  return text;
}

json call_of(const json& block) {
  const json input = block.value("input", json());
  return {{"id", block.value("id", json())},
          {"type", "function"},
          {"function",
           {{"name", block.value("name", json())},
            {"arguments", input.is_object() ? json(json_text(input)) : input}}}};
}

json result_of(const json& block) {
  const json text = text_of_result(block.value("content", json()));
  const bool failed = block.value("is_error", json()) == true;
  return {{"role", "tool"},
          {"tool_call_id", block.value("tool_use_id", json())},
          {"content", failed ? json("Error: " + text.get<std::string>()) : text}};
}

void add_message(json message, json* messages) {
  json calls = json::array();
  json kept = json::array();
  for (json& block : message["content"]) {
    const json type = type_of(block);
    if (type == "tool_use") {
      calls.push_back(call_of(block));
    } else if (type == "tool_result") {
      messages->push_back(result_of(block));
    } else {
      kept.push_back(std::move(block));
    }
  }
  if (kept.empty() && calls.empty()) return;
  message["content"] = kept.empty() ? json() : std::move(kept);
  if (!calls.empty()) {
    json& made = message["tool_calls"];
    if (!made.is_array()) made = json::array();
    for (json& call : calls) made.push_back(std::move(call));
  }
  messages->push_back(std::move(message));
}

bool has_blocks(const json& message) {
  const json* content = nullptr;
  if (message.is_object() && message.contains("content")) content = &message["content"];
  return content != nullptr && content->is_array() &&
         std::any_of(content->begin(), content->end(), is_call_block);
}

}  // namespace

bool has_call_blocks(const json& messages) {
  return messages.is_array() && std::any_of(messages.begin(), messages.end(), has_blocks);
}

json without_call_blocks(const json& messages) {
  json plain = json::array();
  for (const json& message : messages) {
    if (has_blocks(message)) {
      add_message(message, &plain);
    } else {
      plain.push_back(message);
    }
  }
  return plain;
}

bool is_bare_tool(const json& tool) {
  if (!tool.is_object() || tool.contains("function") || !tool.contains("name")) return false;
  const json type = type_of(tool);
  if (type == "function") return true;
  const bool described = tool.contains("input_schema") || tool.contains("parameters");
  return described && (type.is_null() || type == "custom");
}

json tool_of_bare(const json& tool) {
  json function = tool;
  function.erase("type");
  if (const auto schema = function.find("input_schema"); schema != function.end()) {
    if (!function.contains("parameters")) function["parameters"] = *schema;
    function.erase("input_schema");
  }
  function.erase("cache_control");
  return {{"type", "function"}, {"function", std::move(function)}};
}

json choice_of_blocks(const json& choice) {
  const json type = type_of(choice);
  if (type == "auto" || type == "none") return type;
  if (type == "any" || type == "required") return "required";
  const bool named = choice.is_object() && choice.contains("name") && !choice.contains("function");
  if (!named || !(type.is_null() || type == "tool" || type == "function")) return {};
  return {{"type", "function"}, {"function", {{"name", choice["name"]}}}};
}

}  // namespace foretoken
