#include "chat/calls/glimmer_calls.h"

#include "chat/chat_cases.h"
#include "chat/template_formats.h"

namespace foretoken {
namespace {

const std::string kThoughtMessage = " to=self<|message|>Hm.<|eom|><|start|>assistant";
const std::string kCallMessage =
    " to=get_weather<|message|><atem:function_calls>\n<atem:invoke name=\"get_weather\">\n"
    "<atem:parameter name=\"city\">Paris</atem:parameter>\n<atem:parameter name=\"days\">3"
    "</atem:parameter>\n</atem:invoke>\n</atem:function_calls>";
const std::string kGlimmerArguments = R"({"city": "Paris", "days": 3})";

// The prompt ends with <|start|>assistant.
TEST(GlimmerCalls, Table) {
  check_cases(
      options_of("muse_glimmer", "muse_glimmer"),
      {
          {"reasoning and an answer",
           kThoughtMessage + " to=user<|message|>Hello.<|eot|>",
           {"Hm.", "Hello.", {}}},
          {"nobody is named", "<|message|>Hello.<|eot|>", {"", "Hello.", {}}},
          {"reasoning and a call",
           kThoughtMessage + kCallMessage + "<|eot|>",
           {"Hm.", "", {{"get_weather", kGlimmerArguments}}}},
          {"two calls, each in a message",
           kCallMessage +
               "<|eom|><|start|>assistant to=now<|message|><atem:function_calls>\n<atem:invoke "
               "name=\"now\">\n</atem:invoke>\n</atem:function_calls><|eot|>",
           {"", "", {{"get_weather", kGlimmerArguments}, {"now", "{}"}}}},
          {"the markup of a call in an answer",
           " to=user<|message|>Write <atem:invoke name=\"now\">.<|eot|>",
           {"", "Write <atem:invoke name=\"now\">.", {}}},
          {"cut off in a value",
           " to=f<|message|><atem:function_calls><atem:invoke name=\"f\"><atem:parameter "
           "name=\"a\">x",
           {"", "", {{"f", R"({"a": "x"})"}}}},
          {"cut off in a header", kThoughtMessage + " to=us", {"Hm.", "", {}}},
          {"no messages at all", "Hello, to=you.", {"", "Hello, to=you.", {}}},
          {"a word alone", "as", {"", "as", {}}},
          {"spaces without end",
           std::string(600, ' ') + "<|message|>Hello.<|eot|>",
           {"", std::string(600, ' ') + "Hello.", {}}},
      });
}

TEST(GlimmerCalls, WithoutToolsBodiesForThemAreContent) {
  ChatParserOptions options = options_of("muse_glimmer", "muse_glimmer");
  options.tools = nullptr;
  EXPECT_EQ(parse_all_ways(options, " to=now<|message|>x<|eot|>"), (ChatSum{"", "x", {}}));
}

TEST(GlimmerCalls, TheTemplateShowsThem) {
  const ChatFormats formats =
      formats_of_template("<atem:function_calls> ' to=self<|message|>' <|start|>");
  EXPECT_EQ(formats.tool_parser, "muse_glimmer");
  EXPECT_EQ(formats.reasoning_parser, "muse_glimmer");
}

}  // namespace
}  // namespace foretoken
