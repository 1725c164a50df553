#include "serve/responses/responses_tools.h"

#include <utility>

#include "base/files/json_object.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/chat_body.h"
#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// As in chats, where clients send one list to both.
const json& described_tool(const json& tool, const char* type) {
  return tool.contains(type) && tool[type].is_object() ? tool[type] : tool;
}

// What the description says of a text's form, which is not enforced.
std::string form_sentence(const json& tool) {
  const json format = tool.value("format", json());
  if (!format.is_object()) return "";
  const json& inner =
      format.contains("grammar") && format["grammar"].is_object() ? format["grammar"] : format;
  const std::string definition = text_at(inner, "definition");
  if (definition.empty()) return "";
  const std::string syntax = text_at(inner, "syntax");
  return "\nThe input follows this " + (syntax.empty() ? "grammar" : syntax + " grammar") + ":\n" +
         definition;
}

json text_parameters() {
  return {{"type", "object"},
          {"properties",
           {{"input", {{"type", "string"}, {"description", "The text that the tool gets."}}}}},
          {"required", json::array({"input"})},
          {"additionalProperties", false}};
}

// The tools of the list that `choice` allows, those with a text as the functions that they are.
json with_functions(json choice) {
  json& inner = choice.contains("allowed_tools") ? choice["allowed_tools"] : choice;
  if (!inner.is_object() || !inner.contains("tools") || !inner["tools"].is_array()) return choice;
  for (json& tool : inner["tools"]) {
    if (tool.is_object() && tool.value("type", json()) == "custom") {
      tool = {{"type", "function"}, {"name", described_tool(tool, "custom").value("name", json())}};
    }
  }
  return choice;
}

class ToolReader {
 public:
  ToolReader(const FieldNotes& notes, json* chat, OfferedTools* offered)
      : notes_(notes), chat_(chat), offered_(offered) {}

  Status read(const json& tool, const std::string& name_space) {
    const json type = tool.is_object() ? tool.value("type", json()) : json();
    if (!type.is_string()) {
      return invalid_argument(
          "'tools': each must be {\"type\": \"function\", \"name\", \"parameters\"}");
    }
    if (type == "function") return add_function(described_tool(tool, "function"), name_space);
    if (type == "custom") return add_text_tool(described_tool(tool, "custom"), name_space);
    if (!name_space.empty()) {
      return invalid_argument("'tools': those of the namespace '" + shown_name(name_space) +
                              "' must be of type \"function\" or \"custom\", not '" +
                              shown_name(type.get<std::string>()) + "'");
    }
    if (type == "namespace") return read_namespace(tool);
    return notes_.tell("'tools': tools of type '" + shown_name(type.get<std::string>()) +
                       "' do not run here and were left out; give functions");
  }

 private:
  void push(json function) {
    (*chat_)["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
  }

  // Names that are missing or wrong stay so: the chat says which.
  Status add_function(const json& described, const std::string& name_space) {
    json function = json::object();
    for (const char* name : {"name", "description", "parameters", "strict"}) {
      if (described.contains(name) && !described[name].is_null()) function[name] = described[name];
    }
    const std::string name = text_at(function, "name");
    if (!name_space.empty() && !name.empty()) {
      function["name"] = function_of(name_space, name);
      (*offered_)[function["name"]] = {name, name_space, false};
    }
    push(std::move(function));
    return {};
  }

  Status add_text_tool(const json& described, const std::string& name_space) {
    const std::string name = text_at(described, "name");
    if (name.empty()) return invalid_argument("'tools': a tool of type 'custom' needs a 'name'");
    const std::string called = name_space.empty() ? name : function_of(name_space, name);
    (*offered_)[called] = {name, name_space, true};
    push({{"name", called},
          {"description", text_at(described, "description") + form_sentence(described)},
          {"parameters", text_parameters()}});
    return {};
  }

  Status read_namespace(const json& tool) {
    const std::string name = text_at(tool, "name");
    const json tools = tool.value("tools", json());
    if (name.empty() || !tools.is_array()) {
      return invalid_argument("'tools': a tool of type 'namespace' needs a 'name' and 'tools'");
    }
    for (const json& one : tools) FT_RETURN_IF_ERROR(read(one, name));
    return {};
  }

  const FieldNotes notes_;
  json* chat_;
  OfferedTools* offered_;
};

}  // namespace

std::string function_of(const std::string& name_space, const std::string& name) {
  return name_space + (name_space.ends_with("__") ? "" : "__") + name;
}

std::string input_text(const std::string& arguments) {
  const json parsed = parsed_ordered_json(arguments);
  const bool told = parsed.is_object() && parsed.contains("input") && parsed["input"].is_string();
  return told ? parsed["input"].get<std::string>() : arguments;
}

Status read_response_tools(const json& tools, const FieldNotes& notes, json* chat,
                           OfferedTools* offered) {
  if (!tools.is_array()) return invalid_argument("'tools' must be an array");
  ToolReader reader(notes, chat, offered);
  for (const json& tool : tools) FT_RETURN_IF_ERROR(reader.read(tool, ""));
  return {};
}

Status read_response_choice(const json& choice, const FieldNotes& notes, json* chat) {
  if (is_allowed_tools(choice)) return keep_allowed_tools(with_functions(choice), chat);
  const json type = choice.is_object() ? choice.value("type", json()) : json();
  if (type.is_string() && type != "function" && type != "custom") {
    return notes.tell("'tool_choice' names a tool that does not run here and was passed over");
  }
  if (!choice.is_object() && choice != "auto" && choice != "none" && choice != "required") {
    return invalid_argument(
        "'tool_choice' must be \"none\", \"auto\", \"required\" or {\"type\": \"function\", "
        "\"name\": ...}");
  }
  if (!choice.is_object() && !chat->contains("tools")) return {};
  if (!choice.is_object()) {
    (*chat)["tool_choice"] = choice;
    return {};
  }
  const json& named = described_tool(choice, type == "custom" ? "custom" : "function");
  if (!named.contains("name")) {
    (*chat)["tool_choice"] = choice;
    return {};
  }
  const std::string name_space = text_at(named, "namespace");
  json name = named["name"];
  if (!name_space.empty() && name.is_string()) {
    name = function_of(name_space, name.get<std::string>());
  }
  (*chat)["tool_choice"] = {{"type", "function"}, {"function", {{"name", std::move(name)}}}};
  return {};
}

}  // namespace foretoken
