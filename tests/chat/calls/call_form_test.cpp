#include "chat/calls/call_form.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

ChatParserOptions tools_in_format(const char* parser, bool strict) {
  ChatParserOptions options;
  options.tool_parser = parser;
  options.tools = json::parse(R"([{"type": "function", "function": {"name": "f.g", "parameters": {
      "type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}},
      "required": ["a"]}}}])");
  if (strict) options.tools[0]["function"]["strict"] = true;
  return options;
}

json calls_form_in(const char* parser, bool strict) {
  const std::optional<std::string> form = form_of_calls(tools_in_format(parser, strict));
  EXPECT_TRUE(form.has_value()) << parser;
  return form ? json::parse(*form)["calls"] : json();
}

TEST(CallForm, OnlyStrictToolsAskForOne) {
  EXPECT_FALSE(any_strict_tool(nullptr));
  EXPECT_FALSE(any_strict_tool(tools_in_format("hermes", false).tools));
  EXPECT_TRUE(any_strict_tool(tools_in_format("hermes", true).tools));
}

TEST(CallForm, ObjectsHaveTheSchemaOfStrictTools) {
  const json form = calls_form_in("hermes", true);
  EXPECT_EQ(form["marker"], "<tool_call>");
  const json& call = form["calls"][0];
  EXPECT_NE(call[0]["regex"].get<std::string>().find("f\\.g"), std::string::npos);
  EXPECT_EQ(call[1]["schema"], tools_in_format("hermes", true).tools[0]["function"]["parameters"]);
  EXPECT_EQ(calls_form_in("hermes", false)["calls"][0][1]["schema"], json({{"type", "object"}}));
  EXPECT_FALSE(form.contains("between"));
  EXPECT_TRUE(calls_form_in("jamba", true).contains("between"));
}

TEST(CallForm, ElementsStandInTheOrderOfTheSchema) {
  const json call = calls_form_in("qwen3_coder", true)["calls"][0];
  EXPECT_EQ(call[0]["text"], "<function=f.g>\n");
  EXPECT_EQ(call[1]["text"], "<parameter=a>\n");
  EXPECT_EQ(call[2]["until"], "\n</parameter>\n");
  EXPECT_EQ(call[3]["optional"][1]["schema"], json({{"type", "integer"}}));
}

// The parser of elements takes texts as they are, so that quotes would become a part of them.
TEST(CallForm, TextsOfElementsHaveNoQuotes) {
  ChatParserOptions options = tools_in_format("qwen3_coder", true);
  json& parameters = options.tools[0]["function"]["parameters"];
  parameters = json::parse(R"({"$defs": {"Color": {"type": "string", "enum": ["red", "blue"]}},
      "properties": {}, "required": ["v"]})");
  const auto value_of = [&](const char* schema) {
    parameters["properties"]["v"] = json::parse(schema);
    const std::optional<std::string> form = form_of_calls(options);
    return form ? json::parse(*form)["calls"]["calls"][0][2] : json();
  };
  for (const char* listed : {R"({"$ref": "#/$defs/Color"})", R"({"enum": ["red", "blue"]})",
                             R"({"allOf": [{"$ref": "#/$defs/Color"}]})"}) {
    EXPECT_EQ(value_of(listed), json({{"regex", "(red|blue)"}})) << listed;
  }
  for (const char* free : {R"({"type": "string", "pattern": "^a"})", R"({"description": "any"})",
                           R"({"anyOf": [{"const": "a"}, {"const": "b"}]})", "true", "5",
                           R"({"$ref": "http://a/b"})"}) {
    EXPECT_TRUE(value_of(free).contains("until")) << free;
  }
  EXPECT_TRUE(value_of(R"({"type": ["string", "null"]})").contains("schema"));
}

TEST(CallForm, FormatsWithoutAGrammarHaveNone) {
  EXPECT_FALSE(form_of_calls(tools_in_format("pythonic", true)));
  EXPECT_FALSE(form_of_calls(tools_in_format("", true)));
}

}  // namespace
}  // namespace foretoken
