#include "serve/openai/block_chat.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(BlockChat, BlocksBecomeCallsAndResults) {
  const json messages = json::parse(R"([
    {"role": "user", "content": "Read it."},
    {"role": "assistant", "content": [{"type": "text", "text": "So."},
      {"type": "tool_use", "id": "1", "name": "read", "input": {"path": "a"}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "x"}]},
      {"type": "tool_result", "tool_use_id": "2", "content": "gone", "is_error": true},
      {"type": "text", "text": "Go on."}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "3"}]}])");
  ASSERT_TRUE(has_call_blocks(messages));
  EXPECT_FALSE(
      has_call_blocks(json::parse(R"([{"role": "user", "content": [{"type": "text"}]}])")));
  const json plain = without_call_blocks(messages);
  ASSERT_EQ(plain.size(), 6u) << plain.dump(1);
  EXPECT_EQ(plain[1]["tool_calls"][0]["function"],
            json({{"name", "read"}, {"arguments", R"({"path":"a"})"}}));
  EXPECT_EQ(plain[1]["content"].size(), 1u);
  EXPECT_EQ(plain[2], json({{"role", "tool"}, {"tool_call_id", "1"}, {"content", "x"}}));
  EXPECT_EQ(plain[3]["content"], "Error: gone");
  EXPECT_EQ(plain[4]["content"].size(), 1u);
  EXPECT_EQ(plain[5]["content"], "");
}

TEST(BlockChat, WhatIsNoListOfCallsMakesRoom) {
  const json plain = without_call_blocks(json::parse(R"([{"role": "assistant", "tool_calls": "x",
    "content": [{"type": "tool_use", "input": 3}, {"type": "tool_result", "content": {"a": 1}}]}])"));
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0]["content"], R"({"a":1})");
  EXPECT_EQ(plain[1]["tool_calls"].size(), 1u);
}

TEST(BlockChat, BareTools) {
  const json bare = json::parse(
      R"({"name": "f", "description": "d", "input_schema": {"type": "object"}, "cache_control": {}})");
  ASSERT_TRUE(is_bare_tool(bare));
  EXPECT_EQ(tool_of_bare(bare)["function"],
            json::parse(R"({"name": "f", "description": "d", "parameters": {"type": "object"}})"));
  for (const char* other : {R"({"type": "web_search_20250305", "name": "web_search"})",
                            R"({"type": "custom", "name": "patch"})", R"({"name": "f"})",
                            R"({"type": "function", "function": {"name": "f"}})", "3"}) {
    EXPECT_FALSE(is_bare_tool(json::parse(other))) << other;
  }
  EXPECT_TRUE(is_bare_tool(json::parse(R"({"type": "function", "name": "f"})")));
}

TEST(BlockChat, Choices) {
  const auto choice = [](const char* text) { return choice_of_blocks(json::parse(text)); };
  EXPECT_EQ(choice(R"({"type": "auto"})"), "auto");
  EXPECT_EQ(choice(R"({"type": "any"})"), "required");
  EXPECT_EQ(choice(R"({"type": "none"})"), "none");
  EXPECT_EQ(choice(R"({"type": "tool", "name": "f"})")["function"]["name"], "f");
  EXPECT_TRUE(choice(R"({"type": "function", "function": {"name": "f"}})").is_null());
  EXPECT_TRUE(choice(R"({"type": "web_search"})").is_null());
  EXPECT_TRUE(choice("\"auto\"").is_null());
}

}  // namespace
}  // namespace foretoken
