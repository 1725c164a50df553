#include "serve/anthropic/message_thread.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(MessageThread, GoesOnWithAllThatCameBefore) {
  ResponseStore threads(4);
  json body = json::parse(R"({"system": "s", "tools": [{"name": "f"}],
    "messages": [{"role": "user", "content": "a"}], "thread": {"type": "create"}})");
  ASSERT_TRUE(join_thread(threads, &body).value().keeps);
  EXPECT_FALSE(body.contains("thread"));
  thread_keeper(threads, "msg_1", body)(json::parse(R"([{"type": "text", "text": "b"}])"));
  json next = json::parse(R"({"messages": [{"role": "user", "content": "c"}],
    "thread": {"type": "continue", "previous_message_id": "msg_1"}})");
  const MessageThread thread = join_thread(threads, &next).value();
  EXPECT_TRUE(thread.keeps);
  EXPECT_EQ(thread.lost_id, "");
  EXPECT_EQ(next["system"], "s");
  EXPECT_EQ(next["tools"], body["tools"]);
  EXPECT_EQ(next["messages"], json::parse(R"([{"role": "user", "content": "a"},
    {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
    {"role": "user", "content": "c"}])"));
}

TEST(MessageThread, WithoutOneNothingIsKept) {
  ResponseStore threads(4);
  for (const char* text : {R"({"messages": []})", R"({"messages": [], "thread": null})"}) {
    json body = json::parse(text);
    EXPECT_FALSE(join_thread(threads, &body).value().keeps);
  }
}

TEST(MessageThread, ALostOneSaysSoInAnthropicsWords) {
  ResponseStore threads(4);
  json body = json::parse(R"({"messages": [{"role": "user", "content": "c"}],
    "thread": {"type": "continue", "previous_message_id": "msg_9"}})");
  EXPECT_EQ(join_thread(threads, &body).value().lost_id, "msg_9");
  const json error = lost_thread_error("msg_9");
  EXPECT_EQ(error["error"]["type"], "not_found_error");
  EXPECT_EQ(error["error"]["details"]["error_code"], "thread_not_found");
}

TEST(MessageThread, ErrorsNameWhatIsWrong) {
  ResponseStore threads(4);
  json first = json::parse(R"({"messages": [{"role": "user", "content": "a"}]})");
  thread_keeper(threads, "msg_1", first)(json::array());
  for (const char* text :
       {R"({"thread": 3})", R"({"thread": {"type": "go"}})", R"({"thread": {"type": "continue"}})",
        R"({"thread": {"type": "create", "previous_message_id": "msg_1"}})",
        R"({"system": "s", "thread": {"type": "continue", "previous_message_id": "msg_1"}})",
        R"({"messages": 3, "thread": {"type": "continue", "previous_message_id": "msg_1"}})"}) {
    json body = json::parse(text);
    EXPECT_EQ(join_thread(threads, &body).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace foretoken
