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
          {"a message to itself, whose channel it then names again",
           "<|channel|>commentary to=assistant<|channel|>final<|message|>Hello.<|return|>",
           {"", "Hello.", {}}},
          {"dashes of Unicode in the header",
           "<|channel|>\u2013\u2013commentary to=functions.now<|message|>{}<|call|>",
           {"", "", {{"now", "{}"}}}},
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

// What a choice forces is in the channel of the answer.
TEST(HarmonyCalls, ForcedCalls) {
  const std::string before =
      "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>";
  ChatParserOptions options = options_of("openai", "openai_gptoss");
  options.tool_choice = "required";
  EXPECT_EQ(parse_all_ways(options, before + R"([{"name": "now", "parameters": {}}]<|return|>)"),
            (ChatSum{"Hm.", "", {{"now", "{}"}}}));
  options.tool_choice = "get_weather";
  EXPECT_EQ(parse_all_ways(options, before + R"({"city": "Paris"})"),
            (ChatSum{"Hm.", "", {{"get_weather", R"({"city": "Paris"})"}}}));
}

TEST(HarmonyCalls, WordsAboutTheFormat) {
  const std::string final = "<|channel|>final<|message|>";
  for (const std::string text :
       {"A <|channel|> is named, then <|message|> comes.", "It ends with <|end|>, of course.",
        "Say <|start|> first; then the role, the channel and more.", "<|constrain|>json"}) {
    EXPECT_EQ(parse_all_ways(options_of("openai", "openai_gptoss"), final + text + "<|return|>"),
              (ChatSum{"", text, {}}));
  }
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
