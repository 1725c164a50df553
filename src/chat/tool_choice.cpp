#include "chat/tool_choice.h"

#include <algorithm>
#include <utility>

#include "chat/calls/parser_table.h"
#include "chat/scan/marker_scan.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string choice_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool any_begins_blank(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [](const std::string& text) { return text.empty() || is_space(text[0]); });
}

const json* find_function(const json& tools, const std::string& name) {
  for (const json& tool : tools) {
    if (tool["function"]["name"] == name) return &tool["function"];
  }
  return nullptr;
}

json parameters_of(const json& function) {
  json parameters = function.value("parameters", json());
  if (!parameters.is_object()) parameters = json::object();
  if (!parameters.contains("type")) parameters["type"] = "object";
  return parameters;
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Lets the references of a schema that becomes a part of another one lead to where it is then, at
// the JSON pointer `place`. A schema with an "$id" is found by that. `has_names`: a map of schemas.
void move_references(const std::string& place, bool has_names, json* schema) {
  if (schema->is_array()) {
    for (json& item : *schema) move_references(place, false, &item);
  }
  if (!schema->is_object() || (!has_names && schema->contains("$id"))) return;
  for (auto& [name, value] : schema->items()) {
    if (has_names) {
      move_references(place, false, &value);
    } else if (name == "$ref" && value.is_string()) {
      const std::string to = value.get<std::string>();
      if (to == "#" || to.starts_with("#/")) value = "#" + place + to.substr(1);
    } else if (!is_one_of(name, {"enum", "const", "default", "examples"})) {
      move_references(place,
                      is_one_of(name, {"properties", "patternProperties", "$defs", "definitions",
                                       "dependentSchemas"}),
                      &value);
    }
  }
}

json schema_of_calls(const ChatParserOptions& options) {
  json calls = json::array();
  for (const json& tool : options.tools) {
    json parameters = parameters_of(tool["function"]);
    move_references("/items/anyOf/" + std::to_string(calls.size()) + "/properties/parameters",
                    false, &parameters);
    calls.push_back({{"type", "object"},
                     {"properties",
                      {{"name", {{"type", "string"}, {"enum", {tool["function"]["name"]}}}},
                       {"parameters", std::move(parameters)}}},
                     {"required", {"name", "parameters"}},
                     {"additionalProperties", false}});
  }
  json schema = {{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", std::move(calls)}}}};
  if (!options.parallel_tool_calls) schema["maxItems"] = 1;
  return schema;
}

}  // namespace

Status check_tools(const json& tools) {
  if (tools.is_null()) return {};
  if (!tools.is_array()) return invalid_argument("'tools' must be an array of functions");
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string where = "'tools' entry " + std::to_string(i + 1);
    const json& tool = tools[i];
    if (!tool.is_object() || tool.value("type", json("function")) != "function" ||
        !tool.contains("function") || !tool["function"].is_object()) {
      return invalid_argument(where +
                              " must be {\"type\": \"function\", \"function\": {\"name\": ...}}");
    }
    const json name = tool["function"].value("name", json());
    if (!name.is_string() || name.get_ref<const std::string&>().empty()) {
      return invalid_argument(where + " has no 'name'; give the function a name");
    }
    const json description = tool["function"].value("description", json());
    if (!description.is_null() && !description.is_string()) {
      return invalid_argument(where + ": 'description' must be a string");
    }
    const json parameters = tool["function"].value("parameters", json());
    if (!parameters.is_null() && !parameters.is_object()) {
      return invalid_argument(where + ": 'parameters' must be a JSON schema, an object");
    }
  }
  return {};
}

Result<std::string> read_tool_choice(const json& choice, const json& tools) {
  FT_RETURN_IF_ERROR(check_tools(tools));
  const bool has_tools = tools.is_array() && !tools.empty();
  if (choice.is_null()) return std::string(has_tools ? "auto" : "none");
  // Clients whose tools are all turned off still send "auto": without tools it asks for nothing.
  if (choice == "none" || (choice == "auto" && !has_tools)) return std::string("none");
  if (!has_tools) return invalid_argument("'tool_choice' needs 'tools'; give some or remove it");
  if (choice == "auto" || choice == "required") return choice.get<std::string>();
  const bool object = choice.is_object() && choice.value("type", json("function")) == "function" &&
                      choice.contains("function") && choice["function"].is_object();
  const json name = object ? choice["function"].value("name", json()) : json();
  if (!name.is_string()) {
    return invalid_argument(
        "'tool_choice' must be \"none\", \"auto\", \"required\" or {\"type\": \"function\", "
        "\"function\": {\"name\": ...}}");
  }
  if (find_function(tools, name.get<std::string>()) == nullptr) {
    return invalid_argument("'tool_choice' names the function '" + name.get<std::string>() +
                            "', which is not one of 'tools'");
  }
  return name.get<std::string>();
}

ReasoningMarkers reasoning_markers(const ChatParserOptions& options) {
  const ReasoningParserEntry* entry = find_reasoning_parser(options.reasoning_parser);
  if (entry == nullptr) return {};
  const ReasoningFormat& format = entry->format;
  return {format.open, joined(format.close, format.ends),
          format.always || options.starts_in_reasoning};
}

StructuredOutputs after_reasoning(StructuredOutputs wanted, ChatParserOptions* options) {
  const ReasoningParserEntry* entry = find_reasoning_parser(options->reasoning_parser);
  const bool first = entry != nullptr && (entry->format.always || options->starts_in_reasoning);
  if (!first) return wanted;
  wanted.reasoning_ends = entry->format.close;
  // Only where white space cannot be a part of the form itself.
  const bool may_space = !wanted.json.empty() || wanted.json_object ||
                         (!wanted.choice.empty() && !any_begins_blank(wanted.choice));
  wanted.space_after_reasoning = may_space && entry->messages == MessageForm::kNone;
  options->drop_leading_space = wanted.space_after_reasoning;
  return wanted;
}

Result<std::optional<StructuredOutputs>> tool_choice_outputs(ChatParserOptions* chat) {
  const ChatParserOptions& options = *chat;
  const std::string& choice = options.tool_choice;
  const bool forced = choice != "none" && choice != "auto";
  if (!forced || !options.tools.is_array() || options.tools.empty()) {
    return std::optional<StructuredOutputs>();
  }
  FT_RETURN_IF_ERROR(check_tools(options.tools));
  StructuredOutputs outputs;
  outputs.disable_additional_properties = true;
  if (choice == "required") {
    outputs.json = choice_text(schema_of_calls(options));
  } else {
    const json* function = find_function(options.tools, choice);
    if (function == nullptr) {
      return invalid_argument("the function '" + choice + "' is not one of 'tools'");
    }
    outputs.json = choice_text(parameters_of(*function));
  }
  return std::optional<StructuredOutputs>(after_reasoning(std::move(outputs), chat));
}

}  // namespace foretoken
