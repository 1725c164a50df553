#include "chat/calls/section_calls.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

TEST(SectionCalls, Deepseek) {
  check_cases(
      options_of("deepseek_v3"),
      {
          {"V3",
           "Hm.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
           "```json\n{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜>\n"
           "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>"
           "<｜tool▁calls▁end｜>",
           {"", "Hm.", {{"get_weather", R"({"city": "Paris"})"}, {"now", "{}"}}}},
          {"V3.1",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": "
           "\"Paris\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜> Done.",
           {"", " Done.", {{"get_weather", R"({"city": "Paris"})"}}}},
          {"cut off",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁ca",
           {"", "", {{"now", "{}"}}}},
          {"no calls", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", {}},
          {"broken",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a b {}",
           {"", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a b {}", {}}},
          {"other markers", "a <｜User｜> b", {"", "a <｜User｜> b", {}}},
      });
}

TEST(SectionCalls, Kimi) {
  check_cases(
      options_of("kimi_k2"),
      {
          {"two calls",
           "Hm.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
           "<|tool_call_argument_begin|>{\"city\": \"Paris\"}<|tool_call_end|><|tool_call_begin|>"
           "functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
           "<|tool_calls_section_end|>",
           {"", "Hm.", {{"get_weather", R"({"city": "Paris"})"}, {"now", "{}"}}}},
          {"broken arguments, then a good call",
           "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|"
           ">"
           "{\"a\" "
           "1}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>"
           "{}<|tool_call_end|><|tool_calls_section_end|>",
           {"", "", {{"f", "{}"}, {"now", "{}"}}}},
      });
  auto parser = make_chat_parser(options_of("kimi_k2"));
  ASSERT_TRUE(parser.ok());
  const std::vector<ChatPiece> pieces = parser.value()->push(
      "<|tool_call_begin|>functions.now:7<|tool_call_argument_begin|>{}<|tool_call_end|>");
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].call_id, "functions.now:7");
}

}  // namespace
}  // namespace foretoken
