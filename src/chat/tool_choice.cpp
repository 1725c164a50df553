#include "chat/tool_choice.h"

#include <string_view>

#include "chat/parser_table.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// A JSON string is a Lark string too.
std::string lark_text(const std::string& text) { return dump(text); }

// `text` within a Lark regex between slashes.
std::string regex_text(const std::string& text) {
  std::string escaped;
  for (const char byte : text) {
    if (std::string_view("/[](){}.*+?|^$\\").find(byte) != std::string_view::npos) escaped += '\\';
    escaped += byte;
  }
  return escaped;
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

// Moves "$defs" out of `parameters`, where its references no longer find them.
Status collect_definitions(json& parameters, json* all) {
  const auto found = parameters.find("$defs");
  if (found == parameters.end() || !found->is_object()) return {};
  for (const auto& [name, schema] : found->items()) {
    if (all->contains(name) && (*all)[name] != schema) {
      return invalid_argument("the tools define '$defs' " + name +
                              " in two ways; rename one of them");
    }
    (*all)[name] = schema;
  }
  parameters.erase(found);
  return {};
}

Result<json> schema_of_calls(const ChatParserOptions& options) {
  json definitions = json::object();
  json calls = json::array();
  for (const json& tool : options.tools) {
    json parameters = parameters_of(tool["function"]);
    FT_RETURN_IF_ERROR(collect_definitions(parameters, &definitions));
    calls.push_back({{"type", "object"},
                     {"properties",
                      {{"name", {{"type", "string"}, {"enum", {tool["function"]["name"]}}}},
                       {"parameters", std::move(parameters)}}},
                     {"required", {"name", "parameters"}},
                     {"additionalProperties", false}});
  }
  json schema = {{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", std::move(calls)}}}};
  if (!options.parallel_tool_calls) schema["maxItems"] = 1;
  if (!definitions.empty()) schema["$defs"] = std::move(definitions);
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
  if (choice == "none") return std::string("none");
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

Result<StructuredOutputs> after_reasoning(const StructuredOutputs& wanted,
                                          const ChatParserOptions& options) {
  const ReasoningParserEntry* entry = find_reasoning_parser(options.reasoning_parser);
  const bool first = entry != nullptr && (entry->format.always || options.starts_in_reasoning);
  if (!first) return wanted;
  StructuredOutputs outputs;
  std::string body;
  if (!wanted.json.empty() || wanted.json_object) {
    body = "%json " + (wanted.json_object ? R"({"type": "object"})" : wanted.json);
  } else if (!wanted.choice.empty()) {
    for (const std::string& text : wanted.choice)
      body += (body.empty() ? "" : " | ") + lark_text(text);
  } else {
    return unsupported(
        "a regex, grammar or structural_tag cannot follow reasoning yet; use json or choice, or "
        "turn thinking off with 'chat_template_kwargs'");
  }
  std::string closes;
  for (const std::string& close : entry->format.close) {
    closes += (closes.empty() ? "" : "|") + regex_text(close);
  }
  outputs.grammar = "start: thought SPACE answer\nthought[lazy]: /(.|\\n)*(" + closes +
                    ")/\nSPACE: /[ \\n]*/\nanswer: " + body + "\n";
  return outputs;
}

Result<std::optional<StructuredOutputs>> tool_choice_outputs(const ChatParserOptions& options) {
  const std::string& choice = options.tool_choice;
  const bool forced = choice != "none" && choice != "auto";
  if (!forced || !options.tools.is_array() || options.tools.empty()) {
    return std::optional<StructuredOutputs>();
  }
  FT_RETURN_IF_ERROR(check_tools(options.tools));
  StructuredOutputs outputs;
  if (choice == "required") {
    FT_ASSIGN_OR_RETURN(const json schema, schema_of_calls(options));
    outputs.json = dump(schema);
  } else {
    const json* function = find_function(options.tools, choice);
    if (function == nullptr) {
      return invalid_argument("the function '" + choice + "' is not one of 'tools'");
    }
    outputs.json = dump(parameters_of(*function));
  }
  FT_ASSIGN_OR_RETURN(StructuredOutputs placed, after_reasoning(outputs, options));
  return std::optional<StructuredOutputs>(std::move(placed));
}

}  // namespace foretoken
