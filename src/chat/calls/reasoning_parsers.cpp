#include <vector>

#include "chat/calls/chat_parser.h"
#include "chat/calls/parser_names.h"
#include "chat/calls/parser_table.h"

// The table of reasoning parsers.

namespace foretoken {
namespace {

ReasoningFormat between(const char* open, const char* close) {
  ReasoningFormat format;
  format.open = {open};
  format.close = {close};
  return format;
}

ReasoningFormat think() { return between("<think>", "</think>"); }

ReasoningFormat always_think() {
  ReasoningFormat format = think();
  format.always = true;
  return format;
}

ReasoningFormat think_and(std::vector<std::string> dropped) {
  ReasoningFormat format = think();
  format.dropped = std::move(dropped);
  return format;
}

// A model that begins a call is done with thinking.
ReasoningFormat kimi_think() {
  ReasoningFormat format = think();
  format.ends = {"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"};
  return format;
}

// The same.
ReasoningFormat hunyuan4_think() {
  ReasoningFormat format = think();
  format.ends = {"<tool_calls>"};
  return format;
}

// How much it is to think decides which elements it has.
ReasoningFormat horizon_think() {
  ReasoningFormat format;
  for (const std::string element : {"ifm|think", "ifm|think_fast", "ifm|think_faster"}) {
    format.open.push_back("<" + element + ">");
    format.close.push_back("</" + element + ">");
  }
  format.ends = {"<ifm|tool_calls>"};
  return format;
}

ReasoningFormat kimi_channels() {
  ReasoningFormat format = between("<|open|>think<|sep|>", "<|close|>think<|sep|>");
  format.dropped = {"<|open|>response<|sep|>", "<|close|>response<|sep|>",
                    "<|close|>message<|sep|>"};
  return format;
}

// Clients keep the reasoning within the content and send it back as it was.
ReasoningFormat append_think() {
  ReasoningFormat format;
  format.prefix = "<think>";
  return format;
}

ReasoningFormat mistral_think() {
  ReasoningFormat format = between("[THINK]", "[/THINK]");
  format.anywhere = true;
  return format;
}

ReasoningFormat granite_think() {
  ReasoningFormat format;
  format.open = {"Here is my thought process:", "Here's my thought process:"};
  format.close = {"Here is my response:", "Here's my response:"};
  return format;
}

// Without a thought it writes an empty one, behind the answer, too, or the end of one alone.
ReasoningFormat gemma_think() {
  ReasoningFormat format = between("<|channel>thought\n", "<channel|>");
  format.anywhere = true;
  format.dropped = {"<|channel>thought<channel|>", "<channel|>"};
  return format;
}

// The prompt opens the reasoning in words, and the answer has markers of its own.
ReasoningFormat apriel_think() {
  ReasoningFormat format = between("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]");
  format.dropped = {"[END FINAL RESPONSE]"};
  return format;
}

ReasoningFormat cohere_think() {
  ReasoningFormat format = between("<|START_THINKING|>", "<|END_THINKING|>");
  format.dropped = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"};
  return format;
}

// A prompt that ends with the role leaves the channels to the model; the answer is in the last one.
ReasoningFormat harmony_messages() {
  return between("<|start|>assistant", "<|channel|>final<|message|>");
}

// The same: a text block is the answer.
ReasoningFormat inkling_messages() { return between("<|message_model|>", "<|content_text|>"); }

// The same: what is for the user is the answer.
ReasoningFormat glimmer_messages() { return between("<|start|>assistant", "to=user<|message|>"); }

const std::vector<ReasoningParserEntry>& reasoning_parsers() {
  static const std::vector<ReasoningParserEntry> table = {
      {"deepseek_r1", false, always_think()},
      {"deepseek_v3", false, think()},
      {"deepseek_v4", false, think()},
      {"deepseek_v41", false, think()},
      {"qwen3", false, think()},
      {"mimo", false, think()},
      {"glm45", false, think()},
      {"glm47", false, think()},
      {"olmo3", false, think()},
      {"holo2", false, always_think()},
      {"nemotron_v3", false, always_think()},
      {"step3", false, always_think()},
      {"step3p5", false, always_think()},
      {"minimax_m2", false, always_think()},
      {"minimax_m2_append_think", false, append_think()},
      {"minimax_m3", true, between("<mm:think>", "</mm:think>")},
      {"kimi_k2", true, kimi_think()},
      {"kimi_k3", true, kimi_channels()},
      {"poolside_v1", false, think()},
      {"ling3", false, think()},
      {"k2_horizon", true, horizon_think()},
      {"hy_v3", true, think()},
      {"hy_v4", true, hunyuan4_think(), MessageForm::kNone, true},
      {"ernie45", false, think_and({"<response>", "</response>"})},
      {"hunyuan_a13b", false, think_and({"<answer>", "</answer>"})},
      {"seed_oss", true, between("<seed:think>", "</seed:think>")},
      {"gemma4", true, gemma_think()},
      {"apriel", false, apriel_think()},
      {"cohere_command3", true, cohere_think()},
      {"cohere_command4", true, cohere_think()},
      {"mistral", true, mistral_think()},
      {"granite", false, granite_think()},
      {"openai_gptoss", true, harmony_messages(), MessageForm::kHarmony},
      {"gpt_oss", true, harmony_messages(), MessageForm::kHarmony},
      {"inkling", true, inkling_messages(), MessageForm::kInkling},
      {"muse_glimmer", true, glimmer_messages(), MessageForm::kGlimmer},
  };
  return table;
}

}  // namespace

const ReasoningParserEntry* find_reasoning_parser(std::string_view name) {
  for (const ReasoningParserEntry& entry : reasoning_parsers()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::string known_reasoning_parser(std::string_view name) {
  return known_parser_name(name, reasoning_parser_names(), other_reasoning_parsers());
}

std::vector<std::string> reasoning_parser_names() {
  std::vector<std::string> names;
  for (const ReasoningParserEntry& entry : reasoning_parsers()) names.emplace_back(entry.name);
  return names;
}

}  // namespace foretoken
