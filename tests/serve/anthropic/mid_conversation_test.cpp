#include "serve/anthropic/mid_conversation.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

struct Read {
  Directives found;
  std::vector<std::string> warnings;
};

Read read_all(const char* text) {
  Read all;
  const json given = json::parse(text);
  EXPECT_TRUE(has_directives(given));
  Result<Directives> result = read_directives(given, {&all.warnings});
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (result.ok()) all.found = std::move(result.value());
  return all;
}

std::string change(const char* type, const char* name) {
  return json({{"type", type}, {"tool", {{"type", "tool_reference"}, {"name", name}}}}).dump();
}

TEST(MidConversation, InstructionsStandWhereTheyWere) {
  const Read all = read_all(R"([{"role": "user", "content": [
    {"type": "tool_result", "tool_use_id": "1", "content": "a"},
    {"type": "mid_conv_system", "content": [{"type": "text", "text": "Be "},
      {"type": "text", "text": "brief."}], "cache_control": {"type": "ephemeral"}},
    {"type": "text", "text": "Go on"}]}, {"role": "assistant", "content": "Yes"}])");
  EXPECT_EQ(all.found.messages, json::parse(R"([{"role": "user", "content": [
    {"type": "tool_result", "tool_use_id": "1", "content": "a"}]},
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Go on"}]},
    {"role": "assistant", "content": "Yes"}])"));
}

TEST(MidConversation, TheLastChangeOfAToolCounts) {
  const std::string text = R"([{"role": "user", "content": [)" + change("tool_removal", "f") + "," +
                           change("tool_removal", "g") +
                           R"(, {"type": "text", "text": "a"}]}, {"role": "system", "content": [)" +
                           change("tool_addition", "f") +
                           R"(, {"type": "mid_conv_system", "content": [)" +
                           change("tool_removal", "h") + R"(]}]}])";
  const Read all = read_all(text.c_str());
  EXPECT_EQ(all.found.withdrawn, (std::set<std::string>{"g", "h"}));
  EXPECT_EQ(all.found.messages,
            json::parse(R"([{"role": "user", "content": [{"type": "text", "text": "a"}]}])"));
}

TEST(MidConversation, ToolsAreDefinedOnTheWay) {
  const Read all = read_all(R"([{"role": "user", "content": [
    {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "f"}}},
    {"type": "tool_addition", "tool": {"type": "tool_definition", "definition":
      {"name": "f", "description": "new"}}}, {"type": "text", "text": "a"}]}])");
  EXPECT_EQ(all.found.added, json::parse(R"([{"name": "f", "description": "new"}])"));
  const Read elsewhere = read_all(R"([{"role": "system", "content": [{"type": "tool_addition",
    "tool": {"type": "tool_definition", "definition": {"type": "mcp_toolset"}}}]}])");
  EXPECT_EQ(elsewhere.found.added.size(), 1u);
}

TEST(MidConversation, WhatHoldsUntilTheNextMessageOfTheUser) {
  const char* text = R"([{"role": "user", "content": "a"},
    {"role": "system", "content": "old", "clear_at": "next_user_message"},
    {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
    {"role": "system", "content": "new", "clear_at": "next_user_message"}])";
  const json& messages = read_all(text).found.messages;
  ASSERT_EQ(messages.size(), 4u) << messages.dump();
  EXPECT_EQ(messages[3]["content"], "new");
}

TEST(MidConversation, EffortsAreThoseOfATurn) {
  const std::string asked = R"([{"role": "user", "content": "a"},
    {"role": "system", "content": [], "output_config": {"effort": "high"}},
    {"role": "assistant", "content": "b"})";
  EXPECT_EQ(read_all((asked + "]").c_str()).found.effort, "high");
  EXPECT_EQ(read_all((asked + R"(, {"role": "user", "content": [{"type": "tool_result",
                                    "tool_use_id": "1"}]}])")
                         .c_str())
                .found.effort,
            "high");
  EXPECT_EQ(read_all((asked + R"(, {"role": "user", "content": "c"}])").c_str()).found.effort, "");
}

TEST(MidConversation, ToolsOfServersAreTold) {
  const Read all = read_all(R"([{"role": "user", "content": [{"type": "tool_removal", "tool":
    {"type": "mcp_toolset_reference", "server_name": "s"}}, {"type": "text", "text": "a"}]}])");
  EXPECT_TRUE(all.found.withdrawn.empty());
  ASSERT_EQ(all.warnings.size(), 1u);
  EXPECT_NE(all.warnings[0].find("MCP"), std::string::npos);
}

TEST(MidConversation, ErrorsNameTheMessage) {
  for (const auto& [block, part] : {
           std::pair(R"({"type": "tool_removal"})", "message 2: a tool_removal needs a 'tool'"),
           std::pair(R"({"type": "mid_conv_system", "content": 5})", "message 2: 'content' must"),
       }) {
    const json given = {{{"role", "user"}, {"content", "a"}},
                        {{"role", "user"}, {"content", json::array({json::parse(block)})}}};
    const Result<Directives> result = read_directives(given, {});
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.status().message().find(part), std::string::npos) << result.status().message();
  }
  EXPECT_FALSE(has_directives(json::parse(R"([{"role": "user", "content": "a"}, 5, {}])")));
}

}  // namespace
}  // namespace foretoken
