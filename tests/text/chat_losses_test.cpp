#include "text/chat_losses.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// The contents of user messages, and nothing else.
Result<std::string> users_only(const json& messages) {
  std::string text;
  for (const json& message : messages) {
    if (message["role"] == "user") text += message["content"].get<std::string>() + "\n";
  }
  return text;
}

std::vector<std::string> losses(const char* messages_text, const char* tools = "null") {
  const json messages = json::parse(messages_text);
  return find_losses(messages, {{"tools", json::parse(tools)}}, users_only(messages).value(),
                     users_only);
}

TEST(ChatLosses, WhatIsShownIsNotTold) {
  EXPECT_TRUE(losses(R"([{"role": "user", "content": " A question of some length\n"},
                         {"role": "user", "content": "Hi"}, {"role": "a", "content": " "},
                         {"role": "a", "content": null}, {"role": "a", "content": 5}])")
                  .empty());
}

TEST(ChatLosses, ShortWordsThatStandThereByChanceAreLookedForOnceMore) {
  const auto lost = losses(R"([{"role": "user", "content": "It is four o'clock now"},
                               {"role": "tool", "content": "four"}])");
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].find("the content of tool messages (message 2)"), std::string::npos) << lost[0];
}

TEST(ChatLosses, CallsAndTools) {
  const auto lost = losses(
      R"([{"role": "user", "content": "Use the known tool"},
          {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments":
             {"at": [{"deep": "value"}], "n": 1}}}]}])",
      R"([{"function": {"name": "known"}}, {"function": {"name": "other"}}])");
  ASSERT_EQ(lost.size(), 3u);
  EXPECT_NE(lost[0].find("the tools other,"), std::string::npos) << lost[0];
  EXPECT_NE(lost[1].find("the arguments of tool calls"), std::string::npos) << lost[1];
  EXPECT_NE(lost[2].find("the names of called tools"), std::string::npos) << lost[2];
}

TEST(ChatLosses, Documents) {
  const json messages = json::parse(R"([{"role": "user", "content": "What it says: no cats"}])");
  const json variables = json::parse(R"({"documents": [{"title": "A", "text": "no cats"},
                                         {"title": "None", "text": "all dogs"}, {"n": 1}]})");
  const auto lost = find_losses(messages, variables, users_only(messages).value(), users_only);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].find("2 of 3 'documents'"), std::string::npos) << lost[0];
}

TEST(ChatLosses, TextInsideJsonIsFound) {
  const json messages = json::parse(R"([{"role": "tool", "content": "a \"quoted\"\ntext é"}])");
  const auto quoted = [](bool ascii) {
    return [ascii](const json& all) -> Result<std::string> {
      return all[0]["content"].dump(-1, ' ', ascii);
    };
  };
  for (const bool ascii : {false, true}) {
    EXPECT_TRUE(
        find_losses(messages, nullptr, quoted(ascii)(messages).value(), quoted(ascii)).empty());
  }
}

TEST(ChatLosses, ThoughtsBeforeAnAnswerMayBeMissing) {
  EXPECT_TRUE(losses(R"([{"role": "user", "content": "The answer in short"},
                         {"role": "user", "content": "x"}])")
                  .empty());
  const json messages = json::parse(
      R"([{"role": "user", "content": "<think>I wonder why</think> The answer is this"}])");
  const auto answer = [](const json& all) -> Result<std::string> {
    const auto text = all[0]["content"].get<std::string>();
    const size_t at = text.find("</think>");
    return at == std::string::npos ? text : text.substr(at + 8);
  };
  EXPECT_TRUE(find_losses(messages, nullptr, " The answer is this", answer).empty());
}

}  // namespace
}  // namespace foretoken
