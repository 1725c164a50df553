#include "chat/parser_table.h"

#include <array>

#include "chat/deepseek_calls.h"
#include "chat/json_calls.h"
#include "chat/python_calls.h"
#include "chat/xml_calls.h"

namespace foretoken {
namespace {

using Made = std::unique_ptr<ToolParser>;

Made hermes(const ChatParserOptions&) {
  JsonCallFormat format;
  format.open = {"<tool_call>"};
  format.close = "</tool_call>";
  format.single = true;
  format.list = true;
  return std::make_unique<JsonCalls>(format);
}

Made llama3_json(const ChatParserOptions&) {
  JsonCallFormat format;
  format.open = {"<|python_tag|>"};
  format.bare = true;
  format.single = true;
  format.separators = ";,";
  format.needs_known_name = true;
  return std::make_unique<JsonCalls>(format);
}

Made granite(const ChatParserOptions&) {
  JsonCallFormat format;
  format.open = {"<|tool_call|>", "<tool_call>"};
  format.close = "</tool_call>";
  format.bare = true;
  format.single = true;
  format.list = true;
  format.needs_known_name = true;
  return std::make_unique<JsonCalls>(format);
}

Made mistral(const ChatParserOptions&) {
  JsonCallFormat format;
  format.open = {"[TOOL_CALLS]"};
  format.single = true;
  format.list = true;
  format.named = true;
  format.separators = ",";
  return std::make_unique<JsonCalls>(format);
}

Made pythonic(const ChatParserOptions&) {
  return std::make_unique<PythonCalls>(PythonCalls::Format{});
}

Made llama4_pythonic(const ChatParserOptions&) {
  return std::make_unique<PythonCalls>(PythonCalls::Format{"<|python_start|>", "<|python_end|>"});
}

Made qwen3_coder(const ChatParserOptions& options) {
  return std::make_unique<XmlCalls>(options.tools);
}

Made deepseek(const ChatParserOptions&) { return std::make_unique<DeepseekCalls>(); }

constexpr std::array kToolParsers = {
    ToolParserEntry{"hermes", true, CallIdStyle::kUuid, hermes},
    ToolParserEntry{"qwen", true, CallIdStyle::kUuid, hermes},
    ToolParserEntry{"qwen3_coder", true, CallIdStyle::kUuid, qwen3_coder},
    ToolParserEntry{"qwen3_xml", true, CallIdStyle::kUuid, qwen3_coder},
    ToolParserEntry{"llama3_json", false, CallIdStyle::kUuid, llama3_json},
    ToolParserEntry{"llama4_json", false, CallIdStyle::kUuid, llama3_json},
    ToolParserEntry{"llama4_pythonic", true, CallIdStyle::kUuid, llama4_pythonic},
    ToolParserEntry{"pythonic", false, CallIdStyle::kUuid, pythonic},
    ToolParserEntry{"mistral", true, CallIdStyle::kMistral, mistral},
    ToolParserEntry{"granite", true, CallIdStyle::kUuid, granite},
    ToolParserEntry{"deepseek_v3", true, CallIdStyle::kUuid, deepseek},
    ToolParserEntry{"deepseek_v31", true, CallIdStyle::kUuid, deepseek},
};

ReasoningFormat think(bool always) { return {{"<think>"}, {"</think>"}, always, false}; }

const std::array<ReasoningParserEntry, 6>& reasoning_parsers() {
  static const std::array<ReasoningParserEntry, 6> table = {{
      {"deepseek_r1", false, think(true)},
      {"deepseek_v3", false, think(false)},
      {"qwen3", false, think(false)},
      {"glm45", false, think(false)},
      {"mistral", true, {{"[THINK]"}, {"[/THINK]"}, false, true}},
      {"granite",
       false,
       {{"Here is my thought process:", "Here's my thought process:"},
        {"Here is my response:", "Here's my response:"},
        false,
        false}},
  }};
  return table;
}

}  // namespace

const ToolParserEntry* find_tool_parser(std::string_view name) {
  for (const ToolParserEntry& entry : kToolParsers) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const ReasoningParserEntry* find_reasoning_parser(std::string_view name) {
  for (const ReasoningParserEntry& entry : reasoning_parsers()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::vector<std::string> tool_parser_names() {
  std::vector<std::string> names;
  for (const ToolParserEntry& entry : kToolParsers) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> reasoning_parser_names() {
  std::vector<std::string> names;
  for (const ReasoningParserEntry& entry : reasoning_parsers()) names.emplace_back(entry.name);
  return names;
}

}  // namespace foretoken
