#include "chat/scan/call_openings.h"

#include <algorithm>
#include <initializer_list>

namespace foretoken {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), name) != known.end();
}

std::vector<std::string> behind(const std::string& marker, const std::vector<std::string>& next) {
  std::vector<std::string> openings;
  for (const std::string& text : next) {
    openings.push_back(marker + text);
    openings.push_back(marker + "\n" + text);
  }
  return openings;
}

}  // namespace

std::vector<std::string> call_openings(std::string_view tool_parser,
                                       const std::vector<std::string>& names) {
  if (is_one_of(tool_parser, {"qwen3_coder", "qwen3_xml", "mimo", "step3p5"})) {
    return behind("<tool_call>", {"<function="});
  }
  std::vector<std::string> calls;
  if (is_one_of(tool_parser, {"hermes", "qwen", "granite4", "ernie45", "generic"})) {
    for (const std::string& name : names) {
      for (const char* key : {"{\"name\": \"", "{\"name\":\""}) calls.push_back(key + name + "\"");
    }
    return behind("<tool_call>", calls);
  }
  if (!is_one_of(tool_parser, {"glm45", "glm47", "ling3"})) return {};
  for (const std::string& name : names) {
    for (const char* end : {"\n", "<arg_key>", "</tool_call>"}) calls.push_back(name + end);
  }
  return behind("<tool_call>", calls);
}

std::vector<std::string> call_markers(std::string_view tool_parser) {
  struct Row {
    std::vector<std::string_view> parsers;
    std::vector<std::string> markers;
  };
  static const std::vector<Row> table = {
      {{"hermes", "qwen", "granite4", "ernie45", "generic", "qwen3_coder", "qwen3_xml", "mimo",
        "step3p5", "glm45", "glm47", "poolside_v1", "ling3"},
       {"<tool_call>"}},
      {{"hunyuan_a13b", "jamba", "minimax", "hy_v3", "hy_v4"}, {"<tool_calls>"}},
      {{"kimi_k2"}, {"<|tool_calls_section_begin|>"}},
      {{"mistral"}, {"[TOOL_CALLS]"}},
      {{"deepseek_v3", "deepseek_v31"}, {"<｜tool▁calls▁begin｜>"}},
      {{"minimax_m2"}, {"<minimax:tool_call>"}},
      {{"k2_horizon"}, {"<ifm|tool_calls>"}},
      {{"dots"}, {"<dots_function_call>"}},
      {{"seed_oss"}, {"<seed:tool_call>"}},
      {{"longcat"}, {"<longcat_tool_call>"}},
      {{"granite"}, {"<|tool_call|>"}},
      {{"granite-20b-fc"}, {"<function_call>"}},
      {{"cohere_command3", "cohere_command4"}, {"<|START_ACTION|>"}},
      {{"lfm2"}, {"<|tool_call_start|>"}},
      {{"llama4_pythonic"}, {"<|python_start|>"}},
      {{"olmo3"}, {"<function_calls>"}},
      {{"gemma4"}, {"<|tool_call>"}},
      {{"functiongemma"}, {"<start_function_call>"}},
      {{"apertus"}, {"<|tools_prefix|>"}},
      {{"phi4_mini_json"}, {"functools["}},
  };
  for (const Row& row : table) {
    const auto found = std::find(row.parsers.begin(), row.parsers.end(), tool_parser);
    if (found != row.parsers.end()) return row.markers;
  }
  return {};
}

}  // namespace foretoken
