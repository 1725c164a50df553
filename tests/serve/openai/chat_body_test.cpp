#include "serve/openai/chat_body.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(ChatBody, SharedFieldsAreCopiedAsTheyAre) {
  const json body = {{"seed", 4}, {"min_p", "wrong"}, {"stream", true}, {"other", 1}};
  JsonFields fields(body, "");
  json chat = json::object();
  copy_shared_fields(fields, kMessagesBody, kChatBody, &chat);
  copy_field(fields, "other", "renamed", &chat);
  copy_field(fields, "missing", "missing", &chat);
  EXPECT_EQ(chat.size(), 4u);
  EXPECT_EQ(chat["seed"], 4);
  EXPECT_EQ(chat["min_p"], "wrong");
  EXPECT_EQ(chat["renamed"], 1);
  EXPECT_EQ(fields.first_unread(), std::nullopt);
}

TEST(ChatBody, ToolCallsJoinAMessage) {
  json message;
  add_tool_call("1", "f", "{}", &message);
  add_tool_call("2", "g", "[]", &message);
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_TRUE(message["content"].is_null());
  ASSERT_EQ(message["tool_calls"].size(), 2u);
  EXPECT_EQ(message["tool_calls"][1]["function"]["name"], "g");
}

TEST(ChatBody, AllowedToolsStayInBothForms) {
  const json tools = json::parse(R"([{"type": "function", "function": {"name": "f"}},
                                     {"type": "function", "function": {"name": "g"}}])");
  const json of_chats = json::parse(R"({"type": "allowed_tools", "allowed_tools": {
      "mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}})");
  const json of_responses = json::parse(R"({"type": "allowed_tools", "mode": "required", "tools": [
      {"type": "function", "name": "g"}, {"type": "web_search"}]})");
  for (const json& choice : {of_chats, of_responses}) {
    ASSERT_TRUE(is_allowed_tools(choice));
    json chat = {{"tools", tools}};
    ASSERT_TRUE(keep_allowed_tools(choice, &chat).ok());
    EXPECT_EQ(chat["tools"], json::array({tools[1]}));
    EXPECT_EQ(chat["tool_choice"], "required");
    json other = {{"tools", json::array({tools[0]})}};
    EXPECT_FALSE(keep_allowed_tools(choice, &other).ok());
  }
  json chat = {{"tools", tools}};
  ASSERT_TRUE(
      keep_allowed_tools({{"type", "allowed_tools"}, {"tools", json::array()}}, &chat).ok());
  EXPECT_EQ(chat, json::object());
  EXPECT_FALSE(is_allowed_tools("auto"));
}

}  // namespace
}  // namespace foretoken
