#include "chat/template_formats.h"

#include <array>

namespace foretoken {
namespace {

// A parser, and texts that all stand in the templates of its models; those left out stand in all.
struct Signs {
  const char* parser;
  std::array<std::string_view, 3> texts;
};

// The first line that fits counts: markers that others have, too, come last.
constexpr std::array kToolSigns = {
    Signs{"openai", {"<|channel|>", "<|message|>", "analysis"}},
    Signs{"inkling", {"<|content_invoke_tool_json|>"}},
    Signs{"muse_glimmer", {"<atem:function_calls>"}},
    Signs{"deepseek_v41", {"｜DSML｜ invoke"}},
    Signs{"deepseek_v32", {"｜DSML｜", "invoke"}},
    Signs{"deepseek_v3", {"<｜tool▁calls▁begin｜>"}},
    Signs{"kimi_k2", {"<|tool_calls_section_begin|>"}},
    Signs{"kimi_k3", {"<|open|>", "<|sep|>"}},
    Signs{"apertus", {"<|tools_prefix|>"}},
    Signs{"gigachat3", {"function call", "<|role_sep|>", "<|message_sep|>"}},
    Signs{"hy_v3", {"<tool_sep>", "<arg_key>"}},
    Signs{"hy_v4", {"<tool_calls:", "<arg_key:"}},
    Signs{"k2_horizon", {"<ifm|tool_calls>"}},
    Signs{"dots", {"<dots_function_call>"}},
    Signs{"minicpm5", {"<function name=", "<param name="}},
    Signs{"minimax_m3", {"]<]minimax[>["}},
    Signs{"minimax_m2", {"<minimax:tool_call>"}},
    Signs{"step3", {"steptml:invoke"}},
    Signs{"seed_oss", {"seed:tool_call"}},
    Signs{"longcat", {"<longcat_tool_call>"}},
    Signs{"glm45", {"<arg_key>"}},
    Signs{"qwen3_coder", {"<function=", "<parameter="}},
    Signs{"gemma4", {"<|tool_call>", "<tool_call|>"}},
    Signs{"functiongemma", {"<start_function_call>"}},
    Signs{"mistral", {"[TOOL_CALLS]"}},
    Signs{"lfm2", {"<|tool_call_start|>"}},
    Signs{"lfm2", {"<|tool_list_start|>"}},
    Signs{"lfm2", {"List of tools: [", "<|im_start|>"}},
    Signs{"internlm", {"<|action_start|>"}},
    Signs{"cohere_command3", {"<|START_ACTION|>"}},
    Signs{"olmo3", {"<function_calls>"}},
    Signs{"phi4_mini_json", {"functools["}},
    Signs{"llama4_pythonic", {"<|python_start|>"}},
    Signs{"jamba", {"<tool_calls>"}},
    Signs{"granite", {"<|tool_call|>"}},
    Signs{"hermes", {"<tool_call>"}},
    Signs{"granite-20b-fc", {"<function_call>"}},
    Signs{"llama3_json", {"<|start_header_id|>", "\"parameters\""}},
    Signs{"llama3_json", {"<|python_tag|>"}},
};

constexpr std::array kReasoningSigns = {
    Signs{"openai_gptoss", {"<|channel|>", "<|message|>", "analysis"}},
    Signs{"inkling", {"<|content_thinking|>"}},
    Signs{"muse_glimmer", {"to=self<|message|>"}},
    Signs{"seed_oss", {"seed:think"}},
    Signs{"hy_v4", {"<tool_calls:", "<think:"}},
    Signs{"k2_horizon", {"<ifm|think>"}},
    Signs{"mistral", {"[THINK]"}},
    Signs{"gemma4", {"<|channel>", "<channel|>"}},
    Signs{"cohere_command3", {"<|START_THINKING|>"}},
    Signs{"kimi_k2", {"<|tool_calls_section_begin|>", "</think>"}},
    Signs{"kimi_k3", {"<|open|>", "<|sep|>"}},
    Signs{"minimax_m3", {"<mm:think>"}},
    Signs{"minimax_m2", {"<minimax:tool_call>", "</think>"}},
    Signs{"hunyuan_a13b", {"</think>", "<answer>"}},
    Signs{"ernie45", {"</think>", "<response>"}},
    Signs{"qwen3", {"</think>"}},
    Signs{"granite", {"Here is my thought process:"}},
    Signs{"apriel", {"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"}},
};

template <size_t N>
const char* first_that_fits(const std::array<Signs, N>& all, std::string_view source) {
  for (const Signs& signs : all) {
    bool fits = true;
    for (const std::string_view text : signs.texts) {
      fits = fits && source.find(text) != std::string_view::npos;
    }
    if (fits) return signs.parser;
  }
  return "";
}

}  // namespace

ChatFormats formats_of_template(std::string_view source) {
  ChatFormats formats;
  formats.tool_parser = first_that_fits(kToolSigns, source);
  if (formats.tool_parser.empty()) formats.tool_parser = "generic";
  formats.reasoning_parser = first_that_fits(kReasoningSigns, source);
  return formats;
}

}  // namespace foretoken
