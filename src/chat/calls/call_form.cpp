#include "chat/calls/call_form.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "chat/scan/typed_values.h"

namespace foretoken {
namespace call_form {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSpace = "[ \\n]{0,2}";

Json text(const std::string& text) { return {{"text", text}}; }
Json regex(const std::string& pattern) { return {{"regex", pattern}}; }
Json schema(const Json& schema) { return {{"schema", schema}}; }

// A name within a regex.
std::string escaped(const std::string& name) {
  std::string pattern;
  for (const char c : name) {
    if (std::string_view("\\.+*?()|[]{}^$/#&~-").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

// What arguments of a call must be.
Json arguments_schema(const Json& function) {
  Json parameters = is_strict_function(function) ? function.value("parameters", Json()) : Json();
  if (!parameters.is_object()) parameters = Json::object();
  parameters["type"] = "object";
  return parameters;
}

// {"name": "f", "arguments": {...}}
Json object_call(const Json& function, const char* key) {
  const std::string name = escaped(Json(function["name"]).dump());
  const std::string colon = "[ ]?:[ ]?";
  const std::string head = std::string("\\{") + kSpace + "\"name\"" + colon + name + "[ ]?," +
                           kSpace + "\"" + key + "\"" + colon;
  return Json::array(
      {regex(head), schema(arguments_schema(function)), regex(std::string(kSpace) + "\\}")});
}

Json hermes_call(const Json& function) { return object_call(function, "arguments"); }

// f{...}
Json mistral_call(const Json& function) {
  const Json name = text(function["name"].get<std::string>());
  return Json::array({name, Json{{"optional", Json::array({text("[ARGS]")})}},
                      schema(arguments_schema(function))});
}

Json kimi_k2_call(const Json& function) {
  const std::string name = escaped(function["name"].get<std::string>());
  return Json::array({text("<|tool_call_begin|>"), regex("functions\\." + name + ":[0-9]{1,3}"),
                      text("<|tool_call_argument_begin|>"), schema(arguments_schema(function)),
                      text("<|tool_call_end|>")});
}

Json deepseek_v3_call(const Json& function) {
  const std::string name = function["name"].get<std::string>();
  return Json::array({text("<｜tool▁call▁begin｜>"), text("function"), text("<｜tool▁sep｜>"),
                      text(name + "\n```json\n"), schema(arguments_schema(function)), text("\n```"),
                      text("<｜tool▁call▁end｜>")});
}

Json deepseek_v31_call(const Json& function) {
  return Json::array({text("<｜tool▁call▁begin｜>"), text(function["name"].get<std::string>()),
                      text("<｜tool▁sep｜>"), schema(arguments_schema(function)),
                      text("<｜tool▁call▁end｜>")});
}

bool is_word(const Json& value) { return value.is_string(); }

// The texts that a schema lists as its values; empty where it lists none, or others too.
Json words_of(const Json& property) {
  if (!property.is_object()) return Json::array();
  const Json words = property.contains("const") ? Json::array({property["const"]})
                                                : property.value("enum", Json());
  const bool only = words.is_array() && std::all_of(words.begin(), words.end(), is_word);
  return only ? words : Json::array();
}

// A value of an element as its parser reads it: texts as they are, all else as JSON, up to `close`.
void add_value(const Json& given, const Json& root, const std::string& close, Json* parts) {
  Json property = followed_schema(given, root);
  const Json words = words_of(property);
  if (words.empty() && is_text_only(property)) return parts->push_back({{"until", close}});
  if (!words.empty()) {
    std::string any;
    for (const Json& word : words) any += (any.empty() ? "" : "|") + escaped(word);
    parts->push_back(regex("(" + any + ")"));
  } else {
    for (const char* key : {"$defs", "definitions"}) {
      if (property.is_object() && root.contains(key)) property[key] = root[key];
    }
    parts->push_back(schema(property));
  }
  parts->push_back(text(close));
}

// Elements of a strict tool's parameters in the order of its schema; of any other one, any.
Json function_elements_call(const Json& function) {
  Json call = Json::array({text("<function=" + function["name"].get<std::string>() + ">\n")});
  if (!is_strict_function(function)) {
    call.push_back({{"until", "</function>"}});
    return call;
  }
  const Json root = arguments_schema(function);
  const Json required = root.value("required", Json::array());
  const Json properties = root.value("properties", Json::object());
  for (const auto& [name, property] : properties.items()) {
    Json parts = Json::array({text("<parameter=" + name + ">\n")});
    add_value(property, root, "\n</parameter>\n", &parts);
    const bool needed = std::find(required.begin(), required.end(), name) != required.end();
    if (!needed) {
      call.push_back({{"optional", std::move(parts)}});
      continue;
    }
    for (Json& part : parts) call.push_back(std::move(part));
  }
  call.push_back(text("</function>"));
  return call;
}

// How the calls of a format stand in a text.
struct Row {
  std::array<std::string_view, 5> parsers;  // the rest are empty
  const char* marker;
  Json (*call)(const Json& function);
  const char* open = "";          // a regex behind the marker
  const char* between = nullptr;  // a regex between two calls behind one marker
  const char* before_close = "";  // a regex
  const char* close = "";
};

constexpr const char* kListOpen = "[ \\n]{0,2}\\[[ \\n]{0,2}";
constexpr const char* kListClose = "[ \\n]{0,2}\\][ \\n]{0,2}";
constexpr const char* kListComma = "[ ]?,[ \\n]{0,2}";
constexpr Row kRows[] = {
    {{"hermes", "qwen", "granite4", "ernie45", "generic"},
     "<tool_call>",
     hermes_call,
     kSpace,
     nullptr,
     kSpace,
     "</tool_call>"},
    {{"longcat"},
     "<longcat_tool_call>",
     hermes_call,
     kSpace,
     nullptr,
     kSpace,
     "</longcat_tool_call>"},
    {{"hunyuan_a13b", "jamba"},
     "<tool_calls>",
     hermes_call,
     kListOpen,
     kListComma,
     kListClose,
     "</tool_calls>"},
    {{"granite"}, "<|tool_call|>", hermes_call, kListOpen, kListComma, "[ \\n]{0,2}\\]"},
    {{"granite-20b-fc"}, "<function_call>", hermes_call, kSpace},
    {{"phi4_mini_json"}, "functools[", hermes_call, kSpace, kListComma, "[ \\n]{0,2}\\]"},
    {{"mistral"}, "[TOOL_CALLS]", mistral_call},
    {{"kimi_k2"},
     "<|tool_calls_section_begin|>",
     kimi_k2_call,
     "",
     "",
     "",
     "<|tool_calls_section_end|>"},
    {{"deepseek_v3"},
     "<｜tool▁calls▁begin｜>",
     deepseek_v3_call,
     "",
     "\\n?",
     "",
     "<｜tool▁calls▁end｜>"},
    {{"deepseek_v31"},
     "<｜tool▁calls▁begin｜>",
     deepseek_v31_call,
     "",
     "",
     "",
     "<｜tool▁calls▁end｜>"},
    {{"qwen3_coder", "qwen3_xml", "mimo", "step3p5"},
     "<tool_call>",
     function_elements_call,
     kSpace,
     nullptr,
     kSpace,
     "</tool_call>"},
};

const Row* find(std::string_view parser) {
  if (parser.empty()) return nullptr;
  for (const Row& row : kRows) {
    if (std::find(row.parsers.begin(), row.parsers.end(), parser) != row.parsers.end()) return &row;
  }
  return nullptr;
}

Json optional_regex(std::string_view pattern) {
  return pattern.empty() ? Json::array() : Json::array({regex(std::string(pattern))});
}

}  // namespace
}  // namespace call_form

bool is_strict_function(const nlohmann::ordered_json& function) {
  const auto strict = function.find("strict");
  return strict != function.end() && *strict == true;
}

bool any_strict_tool(const nlohmann::ordered_json& tools) {
  return tools.is_array() && std::any_of(tools.begin(), tools.end(), [](const auto& tool) {
           return is_strict_function(tool["function"]);
         });
}

std::optional<std::string> form_of_calls(const ChatParserOptions& options) {
  using call_form::Json;
  const call_form::Row* row = call_form::find(options.tool_parser);
  if (row == nullptr) return std::nullopt;
  Json calls = Json::array();
  for (const Json& tool : options.tools) calls.push_back(row->call(tool["function"]));
  Json close = call_form::optional_regex(row->before_close);
  if (*row->close != '\0') close.push_back(call_form::text(row->close));
  Json form = {{"marker", row->marker},
               {"open", call_form::optional_regex(row->open)},
               {"calls", std::move(calls)},
               {"close", std::move(close)}};
  if (row->between != nullptr) form["between"] = call_form::optional_regex(row->between);
  return Json{{"calls", std::move(form)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace foretoken
