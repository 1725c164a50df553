#include "chat/calls/inkling_calls.h"

#include "chat/chat_cases.h"
#include "chat/template_formats.h"

namespace foretoken {
namespace {

const std::string kThought = "<|content_thinking|>Hm.<|end_message|><|message_model|>";
const std::string kInklingCall =
    "<|content_invoke_tool_json|>{\"name\": \"get_weather\", \"args\": {\"city\": \"Paris\"}}"
    "<|end_message|>";

// The prompt ends with <|message_model|>.
TEST(InklingCalls, Table) {
  check_cases(
      options_of("inkling", "inkling"),
      {
          {"reasoning and an answer",
           kThought + "<|content_text|>Hello.<|content_model_end_sampling|>",
           {"Hm.", "Hello.", {}}},
          {"reasoning and a call",
           kThought + kInklingCall,
           {"Hm.", "", {{"get_weather", R"({"city": "Paris"})"}}}},
          {"the name before the kind",
           "get_weather" + kInklingCall,
           {"", "", {{"get_weather", R"({"city": "Paris"})"}}}},
          {"two calls, and words behind them",
           kInklingCall +
               "<|message_model|><|content_invoke_tool_json|>{\"name\": \"now\", \"args\": {}}"
               "<|end_message|><|message_model|><|content_text|>Done.<|end_message|>",
           {"", "Done.", {{"get_weather", R"({"city": "Paris"})"}, {"now", "{}"}}}},
          {"the arguments first",
           "<|content_invoke_tool_json|>{\"args\": {\"a\": 1}, \"name\": \"now\"}<|end_message|>",
           {"", "", {{"now", R"({"a": 1})"}}}},
          {"no arguments",
           "<|content_invoke_tool_json|>{\"name\": \"now\"}<|end_message|>",
           {"", "", {{"now", "{}"}}}},
          {"a thought that a call ends",
           "<|content_thinking|>Hm." + kInklingCall,
           {"Hm.", "", {{"get_weather", R"({"city": "Paris"})"}}}},
          {"cut off in the arguments",
           "<|content_invoke_tool_json|>{\"name\": \"now\", \"args\": {\"a\": \"x",
           {"", "", {{"now", R"({"a": "x"})"}}}},
          {"broken arguments",
           "<|content_invoke_tool_json|>{\"name\": \"now\", \"args\": {\"a\": 1, oops}}"
           "<|end_message|>",
           {"", "", {{"now", R"({"a": 1})"}}}},
          {"a marker in a text of the arguments",
           "<|content_invoke_tool_json|>{\"name\": \"now\", \"args\": {\"a\": "
           "\"<|content_text|>\"}}<|end_message|>",
           {"", "", {{"now", R"({"a": "<|content_text|>"})"}}}},
          {"no call", "<|content_invoke_tool_json|>none<|end_message|>", {"", "none", {}}},
          {"other blocks", "<|content_invoke_tool_text|>ls<|end_message|>", {"", "ls", {}}},
          {"a block without a kind", "Hello<|end_message|>", {"", "Hello", {}}},
          {"no blocks at all", "Hello, you.", {"", "Hello, you.", {}}},
      });
}

TEST(InklingCalls, ForcedCallsAreInTheAnswer) {
  ChatParserOptions options = options_of("inkling", "inkling");
  options.tool_choice = "required";
  EXPECT_EQ(
      parse_all_ways(options, kThought + R"(<|content_text|>[{"name": "now", "parameters": {}}])"),
      (ChatSum{"Hm.", "", {{"now", "{}"}}}));
  options.tool_choice = "get_weather";
  EXPECT_EQ(parse_all_ways(options, R"(<|content_text|>{"city": "Paris"}<|end_message|>)"),
            (ChatSum{"", "", {{"get_weather", R"({"city": "Paris"})"}}}));
}

TEST(InklingCalls, WithoutTools) {
  ChatParserOptions options = options_of("inkling", "inkling");
  options.tools = nullptr;
  EXPECT_EQ(parse_all_ways(options, kThought + "<|content_text|>Hello.<|end_message|>"),
            (ChatSum{"Hm.", "Hello.", {}}));
}

TEST(InklingCalls, TemplatesAreKnown) {
  const ChatFormats formats = formats_of_template(
      "<|message_model|><|content_thinking|><|content_invoke_tool_json|><|end_message|>");
  EXPECT_EQ(formats.tool_parser, "inkling");
  EXPECT_EQ(formats.reasoning_parser, "inkling");
}

}  // namespace
}  // namespace foretoken
