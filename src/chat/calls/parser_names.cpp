#include "chat/calls/parser_names.h"

#include "base/text/ascii_text.h"

namespace foretoken {
namespace {

constexpr OtherParserName kOtherToolParsers[] = {
    {"qwen25", "hermes"},
    {"qwen3", "hermes"},
    {"qwen3json", "hermes"},
    {"hermes2", "hermes"},
    {"hermes2pro", "hermes"},
    {"llama3", "llama3_json"},
    {"llama31", "llama3_json"},
    {"llama4", "llama4_pythonic"},
    {"glm", "glm45"},
    {"glm46", "glm45"},
    {"glm4moe", "glm45"},
    {"kimi", "kimi_k2"},
    {"deepseek", "deepseek_v3"},
    {"harmony", "gpt_oss"},
    {"openaigptoss", "openai"},
    {"step35", "step3p5"},
    {"phi4mini", "phi4_mini_json"},
};

constexpr OtherParserName kOtherReasoningParsers[] = {
    {"deepseek", "deepseek_r1"},
    {"deepseekv31", "deepseek_v3"},
    {"deepseekv32", "deepseek_v3"},
    {"qwen", "qwen3"},
    {"qwen3thinking", "qwen3"},
    {"glm", "glm45"},
    {"glm46", "glm45"},
    {"kimi", "kimi_k2"},
    {"minimax", "minimax_m2"},
    {"minimaxappendthink", "minimax_m2_append_think"},
    {"openai", "openai_gptoss"},
    {"harmony", "openai_gptoss"},
    {"step35", "step3p5"},
    {"nanov3", "nemotron_v3"},
    {"superv3", "nemotron_v3"},
    {"granitethinkingparser", "granite"},
};

std::string key_of(std::string_view name) {
  std::string key = lower_case(name);
  std::erase_if(key, [](char c) { return c == '-' || c == '_' || c == '.' || c == ' '; });
  return key;
}

}  // namespace

std::string known_parser_name(std::string_view typed, const std::vector<std::string>& names,
                              std::span<const OtherParserName> others) {
  const std::string key = key_of(typed);
  for (const std::string& name : names) {
    if (typed == name) return name;
  }
  for (const std::string& name : names) {
    if (key == key_of(name)) return name;
  }
  for (const std::string_view word : {"auto", "none"}) {
    if (key == word) return std::string(word);
  }
  for (const auto& [theirs, ours] : others) {
    if (key == theirs) return std::string(ours);
  }
  return std::string(typed);
}

std::span<const OtherParserName> other_tool_parsers() { return kOtherToolParsers; }

std::span<const OtherParserName> other_reasoning_parsers() { return kOtherReasoningParsers; }

}  // namespace foretoken
