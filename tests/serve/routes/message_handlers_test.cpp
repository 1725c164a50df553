#include "serve/routes/message_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class MessageHandlers : public test::ServeRig {
 protected:
  json body_ = {
      {"max_tokens", 8}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"temperature", 0}};
};

TEST_F(MessageHandlers, WholeAndStreamedAreTheSame) {
  const json whole = post("/v1/messages", body_);
  EXPECT_EQ(whole["role"], "assistant");
  EXPECT_EQ(whole["model"], "tiny");
  body_["stream"] = true;
  const auto exchange = send("POST", "/v1/messages", body_.dump());
  std::string text;
  for (const json& event : events(exchange->body())) {
    if (event["type"] == "content_block_delta") text += event["delta"]["text"].get<std::string>();
  }
  EXPECT_EQ(text, whole["content"][0]["text"].get<std::string>());
}

TEST_F(MessageHandlers, CountsAreThoseOfTheAnswer) {
  const json answer = post("/v1/messages", body_);
  body_.erase("max_tokens");
  body_.erase("temperature");
  const json count = post("/v1/messages/count_tokens", body_);
  EXPECT_EQ(count["input_tokens"].get<int>(),
            answer["usage"]["input_tokens"].get<int>() +
                answer["usage"]["cache_read_input_tokens"].get<int>());
}

TEST_F(MessageHandlers, ErrorsAreAnthropics) {
  const json error = post("/v1/messages", json::object(), 400);
  EXPECT_EQ(error["type"], "error");
  EXPECT_EQ(error["error"]["type"], "invalid_request_error");
  body_["model"] = "nope";
  EXPECT_EQ(post("/v1/messages", body_, 404)["error"]["type"], "not_found_error");
  context().gate.drain();
  body_.erase("model");
  EXPECT_EQ(post("/v1/messages", body_, 503)["error"]["type"], "overloaded_error");
}

}  // namespace
}  // namespace foretoken
