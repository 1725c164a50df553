#include "chat/calls/parser_table.h"

#include <array>
#include <utility>
#include <vector>

#include "chat/calls/gemma_calls.h"
#include "chat/calls/glimmer_calls.h"
#include "chat/calls/harmony_calls.h"
#include "chat/calls/inkling_calls.h"
#include "chat/calls/json_calls.h"
#include "chat/calls/nested_calls.h"
#include "chat/calls/parser_names.h"
#include "chat/calls/python_calls.h"
#include "chat/calls/section_calls.h"
#include "chat/calls/xml_calls.h"

namespace foretoken {
namespace {

using Made = std::unique_ptr<ToolParser>;

Made marked_objects(const char* open, const char* close) {
  JsonCallFormat format;
  format.open = {open};
  format.close = close;
  format.single = true;
  format.list = true;
  return std::make_unique<JsonCalls>(format);
}

Made hermes(const ChatParserOptions&) { return marked_objects("<tool_call>", "</tool_call>"); }

Made longcat(const ChatParserOptions&) {
  return marked_objects("<longcat_tool_call>", "</longcat_tool_call>");
}

Made tool_calls_list(const ChatParserOptions&) {
  return marked_objects("<tool_calls>", "</tool_calls>");
}

Made internlm(const ChatParserOptions&) {
  return marked_objects("<|action_start|><|plugin|>", "<|action_end|>");
}

Made cohere(const ChatParserOptions&) {
  return marked_objects("<|START_ACTION|>", "<|END_ACTION|>");
}

Made granite_20b(const ChatParserOptions&) { return marked_objects("<function_call>", ""); }

Made phi4_mini(const ChatParserOptions&) { return marked_objects("functools[", ""); }

Made apertus(const ChatParserOptions&) {
  JsonCallFormat format;
  format.open = {"<|tools_prefix|>"};
  format.close = "<|tools_suffix|>";
  format.list = true;
  format.key_is_name = true;
  return std::make_unique<JsonCalls>(format);
}

Made gigachat3(const ChatParserOptions&) {
  JsonCallFormat format;
  format.open = {"<|message_sep|>\n\nfunction call<|role_sep|>\n",
                 "<|message_sep|>function call<|role_sep|>\n", "function call<|role_sep|>\n",
                 "<|function_call|>"};
  format.single = true;
  return std::make_unique<JsonCalls>(format);
}

// The same, understood without their markers, too, where they name a tool.
Made marked_or_bare_objects(std::vector<std::string> open) {
  JsonCallFormat format;
  format.open = std::move(open);
  format.close = "</tool_call>";
  format.bare = true;
  format.single = true;
  format.list = true;
  format.needs_known_name = true;
  return std::make_unique<JsonCalls>(format);
}

// What generic_tools() asks for; a model that forgets the markers is understood.
Made generic(const ChatParserOptions&) { return marked_or_bare_objects({"<tool_call>"}); }

Made granite(const ChatParserOptions&) {
  return marked_or_bare_objects({"<|tool_call|>", "<tool_call>"});
}

Made xlam(const ChatParserOptions&) {
  return marked_or_bare_objects({"[TOOL_CALLS]", "<tool_call>"});
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
  return std::make_unique<PythonCalls>(
      PythonCalls::Format{"<|python_start|>", "<|python_end|>", true, false});
}

Made lfm2(const ChatParserOptions&) {
  return std::make_unique<PythonCalls>(
      PythonCalls::Format{"<|tool_call_start|>", "<|tool_call_end|>", true, false});
}

Made olmo3(const ChatParserOptions&) {
  return std::make_unique<PythonCalls>(
      PythonCalls::Format{"<function_calls>", "</function_calls>", false, true});
}

// The form that Qwen3-Coder and Seed-OSS share, with their names of the section.
XmlCallFormat function_elements(const std::string& section) {
  XmlCallFormat format;
  format.section_open = {"<" + section + ">"};
  format.section_close = {"</" + section + ">"};
  format.call_open = "<function=";
  format.name_ends = {">"};
  format.call_close = "</function>";
  format.key_open = "<parameter=";
  format.key_close = ">";
  format.value_close = "</parameter>";
  format.bare = true;
  format.line_breaks = true;
  return format;
}

// Elements "invoke" and "parameter" with attributes, behind a prefix.
XmlCallFormat invoke_elements(const std::string& prefix, std::vector<std::string> section_open,
                              std::vector<std::string> section_close) {
  XmlCallFormat format;
  format.section_open = std::move(section_open);
  format.section_close = std::move(section_close);
  format.call_open = "<" + prefix + "invoke name=\"";
  format.name_ends = {">"};
  format.call_close = "</" + prefix + "invoke>";
  format.key_open = "<" + prefix + "parameter name=\"";
  format.key_close = ">";
  format.value_close = "</" + prefix + "parameter>";
  format.bare = true;
  format.attributes = true;
  return format;
}

Made qwen3_coder(const ChatParserOptions& options) {
  return std::make_unique<XmlCalls>(function_elements("tool_call"), options.tools);
}

Made seed_oss(const ChatParserOptions& options) {
  return std::make_unique<XmlCalls>(function_elements("seed:tool_call"), options.tools);
}

Made minimax_m2(const ChatParserOptions& options) {
  return std::make_unique<XmlCalls>(
      invoke_elements("", {"<minimax:tool_call>"}, {"</minimax:tool_call>"}), options.tools);
}

// Parameters in a wrapper are DeepSeek's slip, which vLLM repairs, too.
Made dsml(const std::string& prefix, std::vector<std::string> open, std::vector<std::string> close,
          const ChatParserOptions& options) {
  XmlCallFormat format = invoke_elements(prefix, std::move(open), std::move(close));
  format.wrapped = true;
  return std::make_unique<XmlCalls>(std::move(format), options.tools);
}

Made deepseek_dsml(const ChatParserOptions& options) {
  return dsml("｜DSML｜", {"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"},
              {"</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"}, options);
}

// The same with a space behind its marker.
Made deepseek_v41(const ChatParserOptions& options) {
  return dsml("｜DSML｜ ", {"<｜DSML｜ calls>"}, {"</｜DSML｜ calls>"}, options);
}

Made dots(const ChatParserOptions& options) {
  XmlCallFormat format = invoke_elements("", {"<dots_function_call>"}, {"</dots_function_call>"});
  format.bare = false;
  return std::make_unique<XmlCalls>(std::move(format), options.tools);
}

Made step3(const ChatParserOptions& options) {
  XmlCallFormat format =
      invoke_elements("steptml:", {"<｜tool_calls_begin｜>"}, {"<｜tool_calls_end｜>"});
  format.fillers = {"<｜tool_call_begin｜>function<｜tool_sep｜>", "<｜tool_call_end｜>"};
  return std::make_unique<XmlCalls>(std::move(format), options.tools);
}

Made minicpm5(const ChatParserOptions& options) {
  XmlCallFormat format;
  format.call_open = "<function name=\"";
  format.name_ends = {">"};
  format.call_close = "</function>";
  format.key_open = "<param name=\"";
  format.key_close = ">";
  format.value_close = "</param>";
  format.bare = true;
  format.attributes = true;
  format.untyped_json = true;
  format.cdata = true;
  return std::make_unique<XmlCalls>(std::move(format), options.tools);
}

Made kimi_k3(const ChatParserOptions& options) {
  XmlCallFormat format;
  format.section_open = {"<|open|>tools<|sep|>"};
  format.section_close = {"<|close|>tools<|sep|>"};
  format.call_open = "<|open|>call tool=\"";
  format.name_ends = {"<|sep|>"};
  format.call_close = "<|close|>call<|sep|>";
  format.key_open = "<|open|>argument key=\"";
  format.key_close = "<|sep|>";
  format.value_close = "<|close|>argument<|sep|>";
  format.bare = true;
  format.attributes = true;
  return std::make_unique<XmlCalls>(std::move(format), options.tools);
}

Made minimax_m3(const ChatParserOptions& options) {
  return std::make_unique<NestedCalls>(options.tools);
}

// Tags of GLM's kind around keys and values; `mark` begins the name of each.
XmlCallFormat tagged_arguments(const std::string& mark = "") {
  XmlCallFormat format;
  format.key_open = "<" + mark + "arg_key>";
  format.key_close = "</" + mark + "arg_key>";
  format.value_open = "<" + mark + "arg_value>";
  format.value_close = "</" + mark + "arg_value>";
  return format;
}

Made hy_v3(const ChatParserOptions& options) {
  XmlCallFormat format = tagged_arguments();
  format.section_open = {"<tool_calls>"};
  format.section_close = {"</tool_calls>"};
  format.call_open = "<tool_call>";
  format.name_ends = {"<tool_sep>"};
  format.call_close = "</tool_call>";
  format.bare = true;
  return std::make_unique<XmlCalls>(std::move(format), options.tools);
}

// The name ends where parameters begin.
Made hy_v4(const ChatParserOptions& options) {
  XmlCallFormat format = tagged_arguments();
  format.section_open = {"<tool_calls>"};
  format.section_close = {"</tool_calls>"};
  format.call_open = "<tool_call>";
  format.name_ends = {"<arg_key>", "</tool_call>"};
  format.call_close = "</tool_call>";
  return std::make_unique<XmlCalls>(std::move(format), options.tools);
}

Made k2_horizon(const ChatParserOptions& options) {
  XmlCallFormat format = tagged_arguments("ifm|");
  format.section_open = {"<ifm|tool_calls>"};
  format.section_close = {"</ifm|tool_calls>"};
  format.call_open = "<ifm|tool_call>";
  format.name_ends = {"<ifm|arg_key>", "</ifm|tool_call>"};
  format.call_close = "</ifm|tool_call>";
  format.type_open = "<ifm|arg_type>";
  format.type_close = "</ifm|arg_type>";
  format.objects = true;
  return std::make_unique<XmlCalls>(std::move(format), options.tools);
}

Made glm(const ChatParserOptions& options) {
  XmlCallFormat format = tagged_arguments();
  format.section_open = {"<tool_call>"};
  format.section_close = {"</tool_call>"};
  format.name_ends = {"\n", "<arg_key>", "</tool_call>"};
  format.untyped_json = true;
  return std::make_unique<XmlCalls>(std::move(format), options.tools);
}

Made deepseek(const ChatParserOptions&) {
  SectionCallFormat format;
  format.begin = {"<｜tool▁calls▁begin｜>"};
  format.end = {"<｜tool▁calls▁end｜>"};
  format.call_begin = "<｜tool▁call▁begin｜>";
  format.call_end = "<｜tool▁call▁end｜>";
  format.separator = "<｜tool▁sep｜>";
  return std::make_unique<SectionCalls>(format);
}

Made kimi_k2(const ChatParserOptions&) {
  SectionCallFormat format;
  format.begin = {"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"};
  format.end = {"<|tool_calls_section_end|>", "<|tool_call_section_end|>"};
  format.call_begin = "<|tool_call_begin|>";
  format.call_end = "<|tool_call_end|>";
  format.separator = "<|tool_call_argument_begin|>";
  format.header_is_id = true;
  return std::make_unique<SectionCalls>(format);
}

Made gemma4(const ChatParserOptions&) {
  return std::make_unique<GemmaCalls>(GemmaCalls::Format{"<|tool_call>", "<tool_call|>", "<|\"|>"});
}

Made functiongemma(const ChatParserOptions&) {
  return std::make_unique<GemmaCalls>(
      GemmaCalls::Format{"<start_function_call>", "<end_function_call>", "<escape>"});
}

Made harmony(const ChatParserOptions&) { return std::make_unique<HarmonyCalls>(true); }

Made inkling(const ChatParserOptions&) { return std::make_unique<InklingCalls>(true); }

Made muse_glimmer(const ChatParserOptions& options) {
  return std::make_unique<GlimmerCalls>(true, options.tools);
}

constexpr std::array kToolParsers = {
    ToolParserEntry{"hermes", true, CallIdStyle::kUuid, hermes},
    ToolParserEntry{"qwen", true, CallIdStyle::kUuid, hermes},
    ToolParserEntry{"granite4", true, CallIdStyle::kUuid, hermes},
    ToolParserEntry{"ernie45", true, CallIdStyle::kUuid, hermes},
    ToolParserEntry{"longcat", true, CallIdStyle::kUuid, longcat},
    ToolParserEntry{"hunyuan_a13b", true, CallIdStyle::kUuid, tool_calls_list},
    ToolParserEntry{"jamba", true, CallIdStyle::kUuid, tool_calls_list},
    ToolParserEntry{"minimax", true, CallIdStyle::kUuid, tool_calls_list},
    ToolParserEntry{"internlm", true, CallIdStyle::kUuid, internlm},
    ToolParserEntry{"cohere_command3", true, CallIdStyle::kUuid, cohere},
    ToolParserEntry{"cohere_command4", true, CallIdStyle::kUuid, cohere},
    ToolParserEntry{"granite-20b-fc", true, CallIdStyle::kUuid, granite_20b},
    ToolParserEntry{"phi4_mini_json", true, CallIdStyle::kUuid, phi4_mini},
    ToolParserEntry{"xlam", true, CallIdStyle::kUuid, xlam},
    ToolParserEntry{"generic", true, CallIdStyle::kUuid, generic},
    ToolParserEntry{"qwen3_coder", true, CallIdStyle::kUuid, qwen3_coder},
    ToolParserEntry{"qwen3_xml", true, CallIdStyle::kUuid, qwen3_coder},
    ToolParserEntry{"mimo", true, CallIdStyle::kUuid, qwen3_coder},
    ToolParserEntry{"step3p5", true, CallIdStyle::kUuid, qwen3_coder},
    ToolParserEntry{"seed_oss", true, CallIdStyle::kUuid, seed_oss},
    ToolParserEntry{"step3", true, CallIdStyle::kUuid, step3},
    ToolParserEntry{"glm45", true, CallIdStyle::kUuid, glm},
    ToolParserEntry{"glm47", true, CallIdStyle::kUuid, glm},
    ToolParserEntry{"poolside_v1", true, CallIdStyle::kUuid, glm},
    ToolParserEntry{"ling3", true, CallIdStyle::kUuid, glm},
    ToolParserEntry{"k2_horizon", true, CallIdStyle::kUuid, k2_horizon},
    ToolParserEntry{"dots", true, CallIdStyle::kUuid, dots},
    ToolParserEntry{"hy_v3", true, CallIdStyle::kUuid, hy_v3},
    ToolParserEntry{"hy_v4", true, CallIdStyle::kUuid, hy_v4, MessageForm::kNone, true},
    ToolParserEntry{"kimi_k3", true, CallIdStyle::kUuid, kimi_k3},
    ToolParserEntry{"minicpm5", true, CallIdStyle::kUuid, minicpm5},
    ToolParserEntry{"apertus", true, CallIdStyle::kUuid, apertus},
    ToolParserEntry{"gigachat3", true, CallIdStyle::kUuid, gigachat3},
    ToolParserEntry{"minimax_m2", true, CallIdStyle::kUuid, minimax_m2},
    ToolParserEntry{"minimax_m3", true, CallIdStyle::kUuid, minimax_m3},
    ToolParserEntry{"kimi_k2", true, CallIdStyle::kUuid, kimi_k2},
    ToolParserEntry{"openai", true, CallIdStyle::kUuid, harmony, MessageForm::kHarmony},
    ToolParserEntry{"gpt_oss", true, CallIdStyle::kUuid, harmony, MessageForm::kHarmony},
    ToolParserEntry{"inkling", true, CallIdStyle::kUuid, inkling, MessageForm::kInkling},
    ToolParserEntry{"muse_glimmer", true, CallIdStyle::kUuid, muse_glimmer, MessageForm::kGlimmer},
    ToolParserEntry{"gemma4", true, CallIdStyle::kUuid, gemma4},
    ToolParserEntry{"functiongemma", true, CallIdStyle::kUuid, functiongemma},
    ToolParserEntry{"llama3_json", false, CallIdStyle::kUuid, llama3_json},
    ToolParserEntry{"llama4_json", false, CallIdStyle::kUuid, llama3_json},
    ToolParserEntry{"llama4_pythonic", true, CallIdStyle::kUuid, llama4_pythonic},
    ToolParserEntry{"pythonic", false, CallIdStyle::kUuid, pythonic},
    ToolParserEntry{"lfm2", true, CallIdStyle::kUuid, lfm2},
    ToolParserEntry{"olmo3", true, CallIdStyle::kUuid, olmo3},
    ToolParserEntry{"mistral", true, CallIdStyle::kMistral, mistral},
    ToolParserEntry{"granite", true, CallIdStyle::kUuid, granite},
    ToolParserEntry{"deepseek_v3", true, CallIdStyle::kUuid, deepseek},
    ToolParserEntry{"deepseek_v31", true, CallIdStyle::kUuid, deepseek},
    ToolParserEntry{"deepseek_v32", true, CallIdStyle::kUuid, deepseek_dsml},
    ToolParserEntry{"deepseek_v4", true, CallIdStyle::kUuid, deepseek_dsml},
    ToolParserEntry{"deepseek_v41", true, CallIdStyle::kUuid, deepseek_v41},
};

}  // namespace

const ToolParserEntry* find_tool_parser(std::string_view name) {
  for (const ToolParserEntry& entry : kToolParsers) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::vector<std::string> suffixed_tag_names() {
  return {"think", "tool_calls", "tool_call", "arg_key", "arg_value"};
}

std::string known_tool_parser(std::string_view name) {
  return known_parser_name(name, tool_parser_names(), other_tool_parsers());
}

std::vector<std::string> tool_parser_names() {
  std::vector<std::string> names;
  for (const ToolParserEntry& entry : kToolParsers) names.emplace_back(entry.name);
  return names;
}

}  // namespace foretoken
