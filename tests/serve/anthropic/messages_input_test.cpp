#include "serve/anthropic/messages_input.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

json read(const char* given, std::vector<std::string>* warnings = nullptr) {
  json messages = json::array();
  const Status status = read_anthropic_messages(json::parse(given), {warnings}, &messages);
  EXPECT_TRUE(status.ok()) << status.message();
  return messages;
}

std::string error(const char* given) {
  json messages = json::array();
  return read_anthropic_messages(json::parse(given), {}, &messages).message();
}

TEST(MessagesInput, DocumentsAndSearchResultsAreText) {
  const json messages = read(R"([{"role": "user", "content": [
    {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain",
     "data": "abc"}, "cache_control": {"type": "ephemeral"}},
    {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "d"}]}},
    {"type": "search_result", "title": "S", "source": "https://x", "content":
     [{"type": "text", "text": "e"}]},
    {"type": "text", "text": "What?"}]}])");
  ASSERT_EQ(messages.size(), 1u);
  const auto part = [](const char* text) { return json{{"type", "text"}, {"text", text}}; };
  EXPECT_EQ(messages[0]["content"],
            json::array({part("T\nabc"), part("d"), part("S\nhttps://x\ne"), part("What?")}));
}

TEST(MessagesInput, ResultsOfTools) {
  const json messages = read(R"([{"role": "user", "content": [
    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "a"},
     {"type": "document", "source": {"type": "text", "data": "b"}}]},
    {"type": "tool_result", "tool_use_id": "2"},
    {"type": "tool_result", "tool_use_id": "3", "content": "no", "is_error": true}]}])");
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0]["content"], "a\nb");
  EXPECT_EQ(messages[1]["content"], "");
  EXPECT_EQ(messages[2], json({{"role", "tool"}, {"tool_call_id", "3"}, {"content", "Error: no"}}));
}

// As chats take them: what a tool returned, not yet a text.
TEST(MessagesInput, ResultsAsToolsGaveThem) {
  const json messages = read(R"([{"role": "user", "content": [
    {"type": "tool_result", "tool_use_id": "1", "content": {"temp": 18}},
    {"type": "tool_result", "tool_use_id": "2", "content": [1, 2]},
    {"type": "tool_result", "tool_use_id": "3", "content": false}]}])");
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0]["content"], R"({"temp":18})");
  EXPECT_EQ(messages[1]["content"], "[1,2]");
  EXPECT_EQ(messages[2]["content"], "false");
}

TEST(MessagesInput, ToolsThatRanAtAServiceKeepTheirOrder) {
  const json messages = read(R"([{"role": "assistant", "content": [
    {"type": "thinking", "thinking": "Let me ", "signature": "x"},
    {"type": "redacted_thinking", "data": "y"},
    {"type": "thinking", "thinking": "look."},
    {"type": "text", "text": "Searching."},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
      {"type": "web_search_result", "url": "https://x", "title": "X", "encrypted_content": "z"}]},
    {"type": "text", "text": "Found X."}]}])");
  ASSERT_EQ(messages.size(), 3u) << messages.dump(1);
  EXPECT_EQ(messages[0]["content"], "Searching.");
  EXPECT_EQ(messages[0]["reasoning_content"], "Let me look.");
  EXPECT_EQ(messages[0]["tool_calls"][0]["function"]["arguments"], R"({"query":"q"})");
  EXPECT_EQ(messages[1]["tool_call_id"], "s1");
  EXPECT_EQ(messages[1]["content"], "X\nhttps://x\n");
  EXPECT_EQ(messages[2]["content"], "Found X.");
}

TEST(MessagesInput, RolesBesideThoseOfTheApi) {
  const json messages = read(R"([{"role": "ctx", "content": "a"}, {"role": "msg", "content": [
    {"type": "text", "text": "b"}]}, {"role": "developer", "content": "c"},
    {"role": "system", "content": [], "output_config": {"effort": "low"}}])");
  EXPECT_EQ(messages, json::parse(R"([{"role": "user", "content": "a"},
    {"role": "user", "content": "b"}, {"role": "system", "content": "c"}])"));
  EXPECT_NE(error(R"([{"role": "tool", "content": "a"}])").find("'role'"), std::string::npos);
}

TEST(MessagesInput, WhatHasNothingToReadIsTold) {
  std::vector<std::string> warnings;
  const json messages = read(R"([{"role": "user", "content": [
    {"type": "container_upload", "file_id": "f"}, {"type": "text", "text": "a"}]}])",
                             &warnings);
  EXPECT_EQ(messages[0]["content"], "a");
  EXPECT_EQ(warnings,
            std::vector<std::string>{
                "blocks of type 'container_upload' cannot be read here and were left out"});
}

TEST(MessagesInput, WhatIsNoTextIsAnErrorByItsName) {
  EXPECT_NE(error(R"([{"role": "user", "content": [{"type": "image", "source": {}}]}])")
                .find("message 1: blocks of type 'image' are not supported"),
            std::string::npos);
  EXPECT_NE(error(R"([{"role": "user", "content": [{"type": "document", "source":
                      {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}]}])")
                .find("documents of source 'base64' (application/pdf) cannot be read"),
            std::string::npos);
}

// A screenshot must not end a conversation.
TEST(MessagesInput, ResultsThatAreNoTextAreNamed) {
  std::vector<std::string> warnings;
  const json messages = read(R"([{"role": "user", "content": [{"type": "tool_result",
    "tool_use_id": "1", "content": [{"type": "text", "text": "Seen:"},
      {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
      {"type": "document", "source": {"type": "base64", "data": "JVBERi0="}}]}]}])",
                             &warnings);
  const std::string left_out = ": left out, as this server reads text only]";
  EXPECT_EQ(messages[0]["content"], "Seen:\n[image" + left_out + "\n[document" + left_out);
  EXPECT_EQ(warnings.size(), 2u);
}

TEST(MessagesInput, TextOfBlocks) {
  EXPECT_EQ(anthropic_text(nullptr, "x").value(), "");
  EXPECT_EQ(anthropic_text(json::parse(R"(["a", {"type": "text", "text": "b"}])"), "x").value(),
            "ab");
  EXPECT_FALSE(anthropic_text(3, "x").ok());
}

}  // namespace
}  // namespace foretoken
