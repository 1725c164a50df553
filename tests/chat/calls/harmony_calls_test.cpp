#include "chat/calls/harmony_calls.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

const std::string kCall =
    "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": "
    "\"Paris\"}<|call|>";

TEST(HarmonyCalls, Table) {
  check_cases(
      options_of("openai", "openai_gptoss"),
      {
          {"reasoning and an answer",
           "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"
           "Hello.<|return|>",
           {"Hm.", "Hello.", {}}},
          {"reasoning and a call",
           "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + kCall,
           {"Hm.", "", {{"get_weather", R"({"city": "Paris"})"}}}},
          {"the recipient before the channel",
           " to=functions.now<|channel|>commentary json<|message|>{}",
           {"", "", {{"now", "{}"}}}},
          {"words to the user before a call",
           "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant" + kCall,
           {"", "I look.", {{"get_weather", R"({"city": "Paris"})"}}}},
          {"a tool of its own",
           "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
           {"print(1)", "", {}}},
          {"cut off in the arguments",
           "<|channel|>commentary to=functions.f<|message|>{\"a\": \"x",
           {"", "", {{"f", R"({"a": "x"})"}}}},
          {"cut off in the header", "<|channel|>commentary to=functions.f", {}},
          {"broken arguments",
           "<|channel|>commentary to=functions.f<|message|>{\"a\": 1, oops<|call|>",
           {"", "", {{"f", R"({"a": 1})"}}}},
          {"no messages at all", " to be or not", {"", " to be or not", {}}},
      });
}

TEST(HarmonyCalls, WithoutTools) {
  ChatParserOptions options = options_of("openai", "openai_gptoss");
  options.tools = nullptr;
  EXPECT_EQ(parse_all_ways(options,
                           "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
                           "<|channel|>final<|message|>Hello."),
            (ChatSum{"Hm.", "Hello.", {}}));
}

}  // namespace
}  // namespace foretoken
