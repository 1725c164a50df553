#include "chat/calls/call_form.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

ChatParserOptions tools_in_format(const char* parser, bool strict) {
  ChatParserOptions options;
  options.tool_parser = parser;
  options.tools = Json::parse(R"([{"type": "function", "function": {"name": "f.g", "parameters": {
      "type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}},
      "required": ["a"]}}}])");
  if (strict) options.tools[0]["function"]["strict"] = true;
  return options;
}

Json calls_form_in(const char* parser, bool strict) {
  const std::optional<std::string> form = form_of_calls(tools_in_format(parser, strict));
  EXPECT_TRUE(form.has_value()) << parser;
  return form ? Json::parse(*form)["calls"] : Json();
}

TEST(CallForm, OnlyStrictToolsAskForOne) {
  EXPECT_FALSE(any_strict_tool(nullptr));
  EXPECT_FALSE(any_strict_tool(tools_in_format("hermes", false).tools));
  EXPECT_TRUE(any_strict_tool(tools_in_format("hermes", true).tools));
}

TEST(CallForm, ObjectsHaveTheSchemaOfStrictTools) {
  const Json form = calls_form_in("hermes", true);
  EXPECT_EQ(form["marker"], "<tool_call>");
  const Json& call = form["calls"][0];
  EXPECT_NE(call[0]["regex"].get<std::string>().find("f\\.g"), std::string::npos);
  EXPECT_EQ(call[1]["schema"], tools_in_format("hermes", true).tools[0]["function"]["parameters"]);
  EXPECT_EQ(calls_form_in("hermes", false)["calls"][0][1]["schema"], Json({{"type", "object"}}));
  EXPECT_FALSE(form.contains("between"));
  EXPECT_TRUE(calls_form_in("jamba", true).contains("between"));
}

TEST(CallForm, ElementsStandInTheOrderOfTheSchema) {
  const Json call = calls_form_in("qwen3_coder", true)["calls"][0];
  EXPECT_EQ(call[0]["text"], "<function=f.g>\n");
  EXPECT_EQ(call[1]["text"], "<parameter=a>\n");
  EXPECT_EQ(call[2]["until"], "\n</parameter>\n");
  EXPECT_EQ(call[3]["optional"][1]["schema"], Json({{"type", "integer"}}));
}

TEST(CallForm, FormatsWithoutAGrammarHaveNone) {
  EXPECT_FALSE(form_of_calls(tools_in_format("pythonic", true)));
  EXPECT_FALSE(form_of_calls(tools_in_format("", true)));
}

}  // namespace
}  // namespace foretoken
