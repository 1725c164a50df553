#include "serve/routes/count_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class CountHandlers : public test::ServeRig {};

TEST_F(CountHandlers, LengthsAreThoseOfTheAnswers) {
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const json chat = post("/v1/chat/completions", {{"messages", messages}, {"max_tokens", 1}});
  const json counted = post("/v1/chat/completions/input_tokens", {{"messages", messages}});
  EXPECT_EQ(counted["input_tokens"], chat["usage"]["prompt_tokens"]);
  EXPECT_EQ(counted["object"], "response.input_tokens");
  const json response = post("/v1/responses/input_tokens", {{"input", "Hi"}});
  EXPECT_EQ(response["input_tokens"], chat["usage"]["prompt_tokens"]);
  const json longer =
      post("/v1/responses/input_tokens", {{"input", "Hi"}, {"instructions", "Be brief."}});
  EXPECT_GT(longer["input_tokens"], response["input_tokens"]);
  EXPECT_EQ(post("/v1/messages/count_tokens", {{"messages", messages}}),
            (json{{"input_tokens", chat["usage"]["prompt_tokens"]}}));
}

TEST_F(CountHandlers, WhatIsWrongIsSaid) {
  EXPECT_EQ(post("/v1/chat/completions/input_tokens", json::object(), 400)["error"]["param"],
            "messages");
  EXPECT_EQ(post("/v1/responses/input_tokens", json::object(), 400)["error"]["param"], "input");
}

}  // namespace
}  // namespace foretoken
