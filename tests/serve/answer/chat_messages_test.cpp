#include "serve/answer/chat_messages.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(ChatMessages, BareStringsBecomeParts) {
  const json messages =
      json::parse(R"([{"role": "user", "content": [{"type": "text", "text": "a"}, "b"]}])");
  const Result<json> normal = normalise_messages(messages);
  ASSERT_TRUE(normal.ok()) << normal.status().message();
  const json parts = normal.value()[0]["content"];
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0], messages[0]["content"][0]);
  EXPECT_EQ(parts[1].dump(), R"({"type":"text","text":"b"})");
}

TEST(ChatMessages, ArgumentsStayAsTheyWereWritten) {
  for (const char* arguments : {R"("{\"x\": 1}")", R"("")", "null", R"("{\"a")", R"({"x": 1})"}) {
    const json messages = json::parse(
        std::string(
            R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": )") +
        arguments + "}}]}]");
    const Result<json> normal = normalise_messages(messages);
    ASSERT_TRUE(normal.ok()) << normal.status().message();
    EXPECT_EQ(normal.value(), messages);
  }
}

TEST(ChatMessages, AnswersAndResultsMayHaveNoContent) {
  const json messages = json::parse(
      R"([{"role": "assistant", "content": null}, {"role": "assistant"},
          {"role": "assistant", "content": null, "tool_calls": []}, {"role": "tool"}])");
  EXPECT_EQ(normalise_messages(messages).value(), messages);
}

TEST(ChatMessages, WhatIsWrongIsNamed) {
  const auto message = [](const char* text) {
    return normalise_messages(json::parse(text)).status().message();
  };
  EXPECT_NE(message("[]").find("'messages'"), std::string::npos);
  EXPECT_NE(message("{}").find("'messages'"), std::string::npos);
  EXPECT_NE(message("[1]").find("message 1"), std::string::npos);
  EXPECT_NE(message(R"([{"role": "user", "content": "a"}, {"role": "user"}])")
                .find("message 2: 'content' is missing"),
            std::string::npos);
  EXPECT_NE(message(R"([{"role": "user", "content": 5}])").find("'content'"), std::string::npos);
  EXPECT_NE(message(R"([{"role": "user", "content": [{"type": "image_url"}]}])").find("image_url"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
