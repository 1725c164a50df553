#include "serve/openai/foreign_chat.h"

#include <gtest/gtest.h>

#include "serve/flow/chat_of.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

using test::chat_of;
using test::read_chat;

json variables_of(const json& more) {
  const OpenAiRequest request = read_chat(more);
  EXPECT_TRUE(request.warnings.empty()) << more.dump();
  return request.arguments_json.empty() ? json() : json::parse(request.arguments_json);
}

TEST(ForeignChat, ThinkingBySeveralNames) {
  const json on = {{"enable_thinking", true}, {"thinking", true}};
  const json off = {{"enable_thinking", false}, {"thinking", false}};
  EXPECT_EQ(variables_of({{"enable_thinking", false}}), off);
  EXPECT_EQ(variables_of({{"think", true}}), on);
  EXPECT_EQ(variables_of({{"thinking", {{"type", "disabled"}}}}), off);
  EXPECT_EQ(variables_of({{"reasoning", {{"enabled", true}}}}), on);
  json some = {{"reasoning_effort", "low"}};
  some.update(on);
  EXPECT_EQ(variables_of({{"reasoning", {{"effort", "low"}}}}), some);
  EXPECT_EQ(variables_of({{"think", "low"}}), some);
  EXPECT_EQ(variables_of({{"reasoning_effort", {{"effort", "low"}, {"summary", "auto"}}}}), some);
  EXPECT_EQ(variables_of({{"reasoning_effort", {{"effort", nullptr}}}}), json());
  EXPECT_EQ(variables_of({{"think", true},
                          {"chat_template_kwargs", {{"a", 1}, {"enable_thinking", false}}}}),
            json({{"a", 1}, {"enable_thinking", false}, {"thinking", true}}));
  EXPECT_FALSE(read_chat({{"reasoning", {{"exclude", true}}}}).include_reasoning);
  EXPECT_EQ(read_chat({{"thinking", {{"type", "enabled"}, {"budget_tokens", 9}}}}).warnings.size(),
            1u);
  EXPECT_FALSE(chat_of({{"enable_thinking", "perhaps"}}).ok());
}

TEST(ForeignChat, FunctionsBeforeTools) {
  const OpenAiRequest request =
      read_chat({{"messages",
                  {{{"role", "user"}, {"content", "x"}},
                   {{"role", "assistant"},
                    {"content", nullptr},
                    {"function_call", {{"name", "f"}, {"arguments", "{\"a\": 1}"}}}},
                   {{"role", "function"}, {"name", "f"}, {"content", "3"}}}},
                 {"functions", {{{"name", "f"}, {"parameters", {{"type", "object"}}}}}},
                 {"function_call", {{"name", "f"}}}});
  EXPECT_EQ(request.parser.tools[0]["function"]["name"], "f");
  EXPECT_EQ(request.parser.tool_choice, "f");
  const json messages = json::parse(request.messages_json);
  EXPECT_EQ(messages[1]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_FALSE(messages[1].contains("function_call"));
  EXPECT_EQ(messages[2]["role"], "tool");
  EXPECT_EQ(messages[2]["tool_call_id"], messages[1]["tool_calls"][0]["id"]);
}

TEST(ForeignChat, ToolsThatRunElsewhereAreLeftOut) {
  const OpenAiRequest request = read_chat(
      {{"tools",
        {{{"type", "web_search"}}, {{"type", "function"}, {"function", {{"name", "f"}}}}}}});
  EXPECT_EQ(request.parser.tools.size(), 1u);
  EXPECT_EQ(request.warnings.size(), 1u);
  EXPECT_EQ(json::parse(request.arguments_json)["tools"].size(), 1u);
  EXPECT_EQ(read_chat({{"tools", {{{"type", "web_search"}}}}}).arguments_json, "");
}

TEST(ForeignChat, ToolsAndChoicesInOtherForms) {
  const json flat = {{"type", "function"}, {"name", "f"}, {"parameters", {{"type", "object"}}}};
  const json nested = {{"type", "function"}, {"function", {{"name", "g"}}}};
  const json named = {{"type", "function"}, {"name", "f"}};
  const OpenAiRequest request = read_chat({{"tools", {flat, nested}}, {"tool_choice", named}});
  EXPECT_EQ(request.parser.tools[0]["function"]["name"], "f");
  EXPECT_EQ(request.parser.tool_choice, "f");
  EXPECT_TRUE(request.warnings.empty());
}

TEST(ForeignChat, UsageAndReasoningFormat) {
  EXPECT_TRUE(read_chat({{"usage", {{"include", true}}}, {"stream", true}}).include_usage);
  OpenAiDefaults defaults;
  defaults.reasoning_parser = "qwen3";
  const json body = {{"messages", {{{"role", "user"}, {"content", "x"}}}},
                     {"reasoning_format", "none"}};
  const Result<OpenAiRequest> request = parse_openai_request(OpenAiKind::kChat, body, defaults);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request.value().parser.reasoning_parser, "");
}

}  // namespace
}  // namespace foretoken
