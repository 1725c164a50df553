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

TEST(ChatMessages, PartsWithoutATypeOrAListAreTexts) {
  const json expected = json::parse(R"([{"type": "text", "text": "a"}])");
  for (const char* content :
       {R"([{"text": "a"}])", R"({"text": "a"})", R"(["a"])", R"({"type": "text", "text": "a"})"}) {
    json message = {{"role", "user"}};
    message["content"] = json::parse(content);
    const Result<json> normal = normalise_messages(json::array({message}));
    ASSERT_TRUE(normal.ok()) << content << normal.status().message();
    EXPECT_EQ(normal.value()[0]["content"], expected) << content;
  }
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

TEST(ChatMessages, PartsOfOtherApisAreTexts) {
  const json messages = json::parse(R"([
    {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."},
      {"type": "output_text", "text": "b", "annotations": []}, {"type": "refusal", "refusal": "c"}]}])");
  const Result<json> normal = normalise_messages(messages);
  ASSERT_TRUE(normal.ok()) << normal.status().message();
  const auto text = [](const char* of) { return json{{"type", "text"}, {"text", of}}; };
  EXPECT_EQ(normal.value()[0]["content"], json::array({text("a")}));
  EXPECT_EQ(normal.value()[1]["content"], json::array({text("b"), text("c")}));
  EXPECT_EQ(normal.value()[1]["reasoning_content"], "Hm.");
}

// As OpenAI's messages have it, which clients send back as they got them.
TEST(ChatMessages, ARefusalIsTheAnswer) {
  const json messages = json::parse(R"([
    {"role": "assistant", "content": null, "refusal": "No."}, {"role": "assistant", "refusal": "No."},
    {"role": "assistant", "content": "Yes.", "refusal": "No."},
    {"role": "assistant", "content": null, "refusal": null}])");
  const Result<json> normal = normalise_messages(messages);
  ASSERT_TRUE(normal.ok()) << normal.status().message();
  EXPECT_EQ(normal.value()[0]["content"], "No.");
  EXPECT_EQ(normal.value()[1]["content"], "No.");
  EXPECT_EQ(normal.value()[2]["content"], "Yes.");
  EXPECT_TRUE(normal.value()[3]["content"].is_null());
}

TEST(ChatMessages, ThoughtsAsClientsKeepThem) {
  const json messages = json::parse(R"([{"role": "assistant", "content": [
    {"type": "thinking", "thinking": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"type": "reasoning", "reasoning": "c", "index": 0}, {"type": "redacted_thinking", "data": "x"},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "d"}]},
    {"type": "reasoning", "id": "rs_1"}, {"type": "reasoning_text", "text": "e"},
    {"type": "text", "text": "So."}]}])");
  const Result<json> normal = normalise_messages(messages);
  ASSERT_TRUE(normal.ok()) << normal.status().message();
  EXPECT_EQ(normal.value()[0]["reasoning_content"], "abcde");
  EXPECT_EQ(normal.value()[0]["content"].size(), 1u);
  EXPECT_NE(normalise_messages(json::parse(R"([{"role": "assistant", "content":
                [{"type": "thinking", "thinking": 7}]}])"))
                .status()
                .message()
                .find("'thinking'"),
            std::string::npos);
}

TEST(ChatMessages, ResultsThatAreNoTextAreNamed) {
  const json messages = json::parse(R"([{"role": "tool", "tool_call_id": "c", "content": [
    {"type": "text", "text": "Seen:"}, {"type": "image_url", "image_url": {"url": "data:x"}}]}])");
  std::set<std::string> unread;
  const Result<json> normal = normalise_messages(messages, &unread);
  ASSERT_TRUE(normal.ok()) << normal.status().message();
  EXPECT_EQ(normal.value()[0]["content"][1]["text"],
            "[image_url: left out, as this server reads text only]");
  EXPECT_EQ(unread, std::set<std::string>{"image_url"});
}

TEST(ChatMessages, OtherCallsAreCallsOfFunctions) {
  const json messages = json::parse(R"([{"role": "assistant", "content": null, "tool_calls": [
    {"id": "1", "type": "custom", "custom": {"name": "f", "input": "x\"y"}},
    {"id": "2", "name": "g", "arguments": {"a": 1}}]}])");
  const Result<json> normal = normalise_messages(messages);
  ASSERT_TRUE(normal.ok()) << normal.status().message();
  EXPECT_EQ(normal.value()[0]["tool_calls"][1], json::parse(R"({"id": "2", "type": "function",
              "function": {"name": "g", "arguments": {"a": 1}}})"));
  EXPECT_EQ(normal.value()[0]["tool_calls"][0], json::parse(R"({"id": "1", "type": "function",
              "function": {"name": "f", "arguments": "{\"input\":\"x\\\"y\"}"}})"));
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
  for (const char* calls :
       {R"("x")", R"([1])", "[{}]", R"([{"function": "f"}])", R"([{"function": {"name": 5}}])"}) {
    const std::string text = std::string(R"([{"role": "assistant", "tool_calls": )") + calls + "}]";
    EXPECT_NE(message(text.c_str()).find("message 1: 'tool_calls'"), std::string::npos) << text;
  }
  for (const char* name : {"name", "tool_call_id", "reasoning_content", "refusal"}) {
    const std::string text =
        std::string(R"([{"role": "assistant", "content": "a", ")") + name + "\": [1]}]";
    EXPECT_NE(message(text.c_str()).find("message 1: '" + std::string(name) + "'"),
              std::string::npos)
        << text;
  }
  EXPECT_NE(message(R"([{"role": "user", "content": [{"type": "image_url"}]}])").find("image_url"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
