#include "serve/responses/responses_tools.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(ResponsesTools, TextsAndNamespacesBecomeFunctions) {
  json chat = json::object();
  OfferedTools offered;
  const json tools = json::parse(R"([
    {"type": "function", "name": "f"},
    {"type": "custom", "name": "patch", "description": "Edits.",
     "format": {"type": "grammar", "syntax": "lark", "definition": "start: A"}},
    {"type": "namespace", "name": "mcp__files", "tools": [
      {"type": "function", "name": "read", "parameters": {"type": "object"}}]}])");
  ASSERT_TRUE(read_response_tools(tools, {}, &chat, &offered).ok());
  ASSERT_EQ(chat["tools"].size(), 3u);
  const json& text = chat["tools"][1]["function"];
  EXPECT_EQ(text["parameters"]["required"], json::array({"input"}));
  EXPECT_EQ(text["description"], "Edits.\nThe input follows this lark grammar:\nstart: A");
  EXPECT_EQ(chat["tools"][2]["function"]["name"], "mcp__files__read");
  ASSERT_EQ(offered.size(), 2u);
  EXPECT_TRUE(offered["patch"].is_text);
  EXPECT_EQ(offered["mcp__files__read"].name, "read");
  EXPECT_EQ(offered["mcp__files__read"].name_space, "mcp__files");
}

TEST(ResponsesTools, WhatRunsElsewhereIsLeftOut) {
  json chat = json::object();
  OfferedTools offered;
  std::vector<std::string> warnings;
  const json tools = json::parse(R"([{"type": "web_search"}])");
  ASSERT_TRUE(read_response_tools(tools, {&warnings}, &chat, &offered).ok());
  EXPECT_FALSE(chat.contains("tools"));
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_FALSE(read_response_tools(tools, {}, &chat, &offered).ok());
  for (const char* wrong :
       {R"([3])", R"([{"type": "custom"}])", R"([{"type": "namespace"}])",
        R"([{"type": "namespace", "name": "n", "tools": [{"type": "web_search", "name": "w"}]}])",
        R"([{"type": "namespace", "name": "n", "tools": [{"type": "namespace", "name": "m",
             "tools": []}]}])"}) {
    EXPECT_FALSE(read_response_tools(json::parse(wrong), {&warnings}, &chat, &offered).ok())
        << wrong;
  }
}

TEST(ResponsesTools, AChoiceMayNameEither) {
  const auto chosen = [](const char* choice) {
    json chat = {{"tools", json::array({{{"type", "function"}, {"function", {{"name", "p"}}}}})}};
    EXPECT_TRUE(read_response_choice(json::parse(choice), {}, &chat).ok()) << choice;
    return chat["tool_choice"];
  };
  EXPECT_EQ(chosen(R"({"type": "custom", "name": "p"})")["function"]["name"], "p");
  EXPECT_EQ(chosen(R"({"type": "function", "name": "r", "namespace": "n__"})")["function"]["name"],
            "n__r");
  EXPECT_EQ(chosen(R"({"type": "allowed_tools", "mode": "required",
                       "tools": [{"type": "custom", "name": "p"}]})"),
            "required");
}

TEST(ResponsesTools, TheTextOfACall) {
  EXPECT_EQ(input_text(R"({"input": "a\nb"})"), "a\nb");
  EXPECT_EQ(input_text("a"), "a");
  EXPECT_EQ(input_text(R"({"input": 3})"), R"({"input": 3})");
}

}  // namespace
}  // namespace foretoken
