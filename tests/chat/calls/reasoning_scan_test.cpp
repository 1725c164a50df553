#include "chat/calls/reasoning_scan.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

TEST(ReasoningScan, AlwaysReasoning) {
  check_cases(options_of("", "deepseek_r1"),
              {
                  {"without an opening marker", "hm</think>\n\nSo.", {"hm", "\n\nSo.", {}}},
                  {"with one", "\n<think>\nhm</think>So.", {"\nhm", "So.", {}}},
                  {"never closed", "hm < </thin", {"hm < </thin", "", {}}},
                  {"closed at once", "</think>So.", {"", "So.", {}}},
                  {"markers in the content stay",
                   "a</think><think>b</think>",
                   {"a", "<think>b</think>", {}}},
              });
}

TEST(ReasoningScan, OnlyBehindAMarker) {
  check_cases(options_of("", "qwen3"),
              {
                  {"none", "So < it.", {"", "So < it.", {}}},
                  {"white space", " \n", {"", " \n", {}}},
                  {"some", "<think>hm</think>So.", {"hm", "So.", {}}},
                  {"a marker too late", "a <think>b</think>", {"", "a <think>b</think>", {}}},
                  {"half a marker", "<thi", {"", "<thi", {}}},
              });
  ChatParserOptions inside = options_of("", "qwen3");
  inside.starts_in_reasoning = true;
  check_cases(inside, {{"the prompt opened it", "hm</think>So.", {"hm", "So.", {}}},
                       {"and the model again", "<think>hm</think>So.", {"hm", "So.", {}}}});
}

TEST(ReasoningScan, MistralMayThinkAnywhere) {
  check_cases(options_of("mistral", "mistral"),
              {{"twice, then a call",
                "A[THINK]b[/THINK]C[THINK]d[/THINK][TOOL_CALLS]now{}",
                {"bd", "AC", {{"now", "{}"}}}}});
}

TEST(ReasoningScan, Granite) {
  check_cases(options_of("", "granite"),
              {{"sentences as markers",
                "Here's my thought process: hm. Here is my response: So.",
                {" hm. ", " So.", {}}},
               {"none", "Here is my dog.", {"", "Here is my dog.", {}}}});
}

TEST(ReasoningScan, WhatElseFormatsHave) {
  ChatParserOptions options;
  options.reasoning_parser = "ernie45";
  EXPECT_EQ(parse_all_ways(options, "<think>a</think>\n<response>\nb</response>"),
            (ChatSum{"a", "\n\nb", {}}));
  options.reasoning_parser = "minimax_m2_append_think";
  EXPECT_EQ(parse_all_ways(options, "a</think>b"), (ChatSum{"", "<think>a</think>b", {}}));
  options.reasoning_parser = "minimax_m3";
  EXPECT_EQ(parse_all_ways(options, "<mm:think>a</mm:think>b"), (ChatSum{"a", "b", {}}));
  options.reasoning_parser = "gemma4";
  EXPECT_EQ(parse_all_ways(options, "<|channel>thought\na<channel|>b"), (ChatSum{"a", "b", {}}));
  for (const char* none :
       {"<|channel>thought<channel|>b", "<|channel>thought\n<channel|>b<channel|>",
        "b<|channel>thought\n<channel|><channel|>"}) {
    EXPECT_EQ(parse_all_ways(options, none), (ChatSum{"", "b", {}})) << none;
  }
  options.reasoning_parser = "apriel";
  options.starts_in_reasoning = opens_reasoning("apriel", "\nHere are my reasoning steps:\n");
  EXPECT_EQ(parse_all_ways(options, "a[BEGIN FINAL RESPONSE]b[END FINAL RESPONSE]"),
            (ChatSum{"a", "b", {}}));
  EXPECT_EQ(parse_all_ways(options_of("k2_horizon", "k2_horizon"),
                           "<ifm|think_fast>a<ifm|tool_calls><ifm|tool_call>now</ifm|tool_call>"
                           "</ifm|tool_calls>"),
            (ChatSum{"a", "", {{"now", "{}"}}}));
  EXPECT_EQ(parse_all_ways(options_of("kimi_k2", "kimi_k2"),
                           "<think>a<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0"
                           "<|tool_call_argument_begin|>{}<|tool_call_end|>"
                           "<|tool_calls_section_end|>"),
            (ChatSum{"a", "", {{"now", "{}"}}}));
}

TEST(ReasoningScan, ACallEndsTheThought) {
  const ChatParserOptions coder = options_of("qwen3_coder", "qwen3");
  const std::string call = "<tool_call>\n<function=now>\n</function>\n</tool_call>";
  const ChatSum called{"a ", "", {{"now", "{}"}}};
  EXPECT_EQ(parse_all_ways(coder, "<think>a " + call), called);
  EXPECT_EQ(parse_all_ways(coder, "<think>a " + call + "</think>"), called);
  EXPECT_EQ(parse_all_ways(coder, "<think>Write <tool_call> first.</think>b"),
            (ChatSum{"Write <tool_call> first.", "b", {}}));
  EXPECT_EQ(parse_all_ways(coder, "<think>a</think>b</think>"), (ChatSum{"a", "b</think>", {}}));
  EXPECT_EQ(parse_all_ways(options_of("glm45", "glm45"), "<think>a <tool_call>now\n</tool_call>"),
            called);
  EXPECT_EQ(parse_all_ways(options_of("glm45", "glm45"), "<think>a <tool_call>other\n</tool_call>"),
            (ChatSum{"a <tool_call>other\n</tool_call>", "", {}}));
}

}  // namespace
}  // namespace foretoken
