#include "serve/responses/response_items.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::optional<json> known(const std::string& id) {
  if (id != "msg_1") return std::nullopt;
  return json{{"id", id}, {"type", "message"}, {"role", "user"}, {"content", "known"}};
}

Result<json> read(const std::string& text) {
  return read_conversation_items(json::parse(text), known);
}

TEST(ResponseItems, IdsBeginWithTheirPrefix) {
  EXPECT_TRUE(make_item_id("msg").starts_with("msg_"));
  EXPECT_NE(make_item_id("msg"), make_item_id("msg"));
}

TEST(ResponseItems, ATextIsAMessageAndIdsAreThereOnce) {
  json items = json::array();
  add_items("Hi", &items);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0]["role"], "user");
  EXPECT_EQ(items[0]["content"][0], (json{{"type", "input_text"}, {"text", "Hi"}}));
  add_items(json::array({items[0], {{"type", "function_call"}}}), &items);
  EXPECT_NE(items[1]["id"], items[0]["id"]);
  EXPECT_TRUE(items[2]["id"].get<std::string>().starts_with("fc_"));
}

TEST(ResponseItems, ThoseOfAConversationAreWholeItems) {
  const auto items = read(R"([{"role": "assistant", "content": "a"},
    {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "item_reference", "id": "msg_1"}, {"type": "item_reference", "id": "msg_2"}])");
  ASSERT_TRUE(items.ok()) << items.status().message();
  ASSERT_EQ(items.value().size(), 3U);
  const json& message = items.value()[0];
  EXPECT_EQ(message["status"], "completed");
  EXPECT_EQ(message["type"], "message");
  EXPECT_EQ(message["content"][0]["type"], "output_text");
  EXPECT_FALSE(items.value()[1].contains("status"));
  EXPECT_EQ(items.value()[2]["id"], "msg_1");
  EXPECT_EQ(items.value()[2]["content"][0]["text"], "known");
  EXPECT_TRUE(read("[]").value().empty());
}

TEST(ResponseItems, WhatNoResponseCouldReadIsTold) {
  EXPECT_NE(read("{}").status().message().find("'items' must be a list"), std::string::npos);
  const std::string image =
      read(R"([{"role": "user", "content": [{"type": "input_image"}]}])").status().message();
  EXPECT_NE(image.find("'items' item 1: parts of type 'input_image'"), std::string::npos) << image;
}

}  // namespace
}  // namespace foretoken
