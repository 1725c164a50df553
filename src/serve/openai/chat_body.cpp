#include "serve/openai/chat_body.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "serve/fields/request_warnings.h"
#include "serve/openai/foreign_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::set<std::string_view> names_of(ApiBody body) {
  std::set<std::string_view> names;
  for (const ApiField& field : api_fields()) {
    if ((field.bodies & body) != 0) names.insert(field.name);
  }
  return names;
}

// The name of a function in a list of allowed tools; null for a tool of another kind.
json allowed_name(const json& tool) {
  if (!tool.is_object() || tool.value("type", json("function")) != "function") return {};
  const json function = tool.value("function", json());
  return function.is_object() ? function.value("name", json()) : tool.value("name", json());
}

}  // namespace

void copy_field(JsonFields& fields, const char* from, const char* to, json* chat) {
  const json* value = fields.raw(from);
  if (value != nullptr) (*chat)[to] = *value;
}

void copy_shared_fields(JsonFields& fields, ApiBody from, ApiBody to, json* body) {
  for (const char* name : shared_fields(from, to)) copy_field(fields, name, name, body);
  // A foreign name that the body has as its own is shared, or means something else there.
  const std::set<std::string_view> own = names_of(from);
  for (const char* name : foreign_names()) {
    if (!own.contains(name)) copy_field(fields, name, name, body);
  }
}

Result<OpenAiRequest> parse_as_chat(const json& chat, const OpenAiDefaults& defaults,
                                    std::vector<std::string> warnings) {
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kChat, chat, defaults));
  add_warnings(request.warnings, &warnings);
  request.warnings = std::move(warnings);
  return request;
}

void add_tool_call(const std::string& id, const std::string& name, const std::string& arguments,
                   json* message) {
  if (message->is_null()) *message = {{"role", "assistant"}, {"content", nullptr}};
  (*message)["tool_calls"].push_back(
      {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}});
}

bool is_allowed_tools(const json& choice) {
  return choice.is_object() && choice.value("type", json()) == "allowed_tools";
}

Status keep_allowed_tools(const json& choice, json* chat) {
  const json inner = choice.value("allowed_tools", choice);
  const json mode = inner.is_object() ? inner.value("mode", json("auto")) : json();
  const json allowed = inner.is_object() ? inner.value("tools", json()) : json();
  if (!allowed.is_array() || (mode != "auto" && mode != "required")) {
    return invalid_argument(
        "'tool_choice' of type \"allowed_tools\" needs 'mode', \"auto\" or \"required\", and "
        "'tools'");
  }
  const json tools = chat->value("tools", json::array());
  std::set<std::string> names;
  for (const json& tool : allowed) {
    const bool elsewhere =
        tool.is_object() && tool.value("type", json()).is_string() && tool["type"] != "function";
    if (elsewhere) continue;
    const json name = allowed_name(tool);
    if (!name.is_string()) {
      return invalid_argument(
          "'tool_choice': each of the tools that are allowed must be {\"type\": \"function\"} with "
          "a name");
    }
    names.insert(name.get<std::string>());
  }
  json kept = json::array();
  for (const json& tool : tools) {
    const json name = allowed_name(tool);
    if (!name.is_string() || !names.contains(name.get<std::string>())) continue;
    names.erase(name.get<std::string>());
    kept.push_back(tool);
  }
  if (!names.empty()) {
    return invalid_argument("'tool_choice' allows the function '" + shown_name(*names.begin()) +
                            "', which is not one of 'tools'");
  }
  chat->erase("tools");
  chat->erase("tool_choice");
  if (kept.empty()) return {};
  (*chat)["tools"] = std::move(kept);
  (*chat)["tool_choice"] = mode;
  return {};
}

}  // namespace foretoken
