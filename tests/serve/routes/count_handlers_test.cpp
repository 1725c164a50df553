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

// What is rendered runs as it is.
TEST_F(CountHandlers, ARenderedBodyMakesTheSameTokens) {
  json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
               {"max_completion_tokens", 4},
               {"temperature", 0},
               {"return_token_ids", true}};
  const json chat = post("/v1/chat/completions", body);
  body.update({{"logprobs", true}, {"top_logprobs", 2}, {"stream", false}});
  const json rendered = post("/v1/chat/completions/render", body);
  EXPECT_EQ(rendered["token_ids"], chat["prompt_token_ids"]);
  EXPECT_EQ(rendered["model"], "tiny");
  EXPECT_EQ(rendered["request_id"].get<std::string>().rfind("chatcmpl-", 0), 0u);
  EXPECT_EQ((json{{"temperature", 0}, {"max_tokens", 4}, {"logprobs", 2}}),
            rendered["sampling_params"]);
  const json made = post("/inference/v1/generate", rendered)["choices"][0];
  EXPECT_EQ(made["token_ids"], chat["choices"][0]["token_ids"]);
  EXPECT_EQ(made["logprobs"]["content"][0]["top_logprobs"].size(), 2u);
}

TEST_F(CountHandlers, EachPromptOfACompletionIsRendered) {
  const json all = post("/v1/completions/render",
                        {{"prompt", {"Once", "Hi"}}, {"top_p", 0.456}, {"cache_salt", "s"}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NE(all[0]["token_ids"], all[1]["token_ids"]);
  EXPECT_EQ(all[0]["sampling_params"], (json{{"top_p", 0.456}}));
  EXPECT_EQ(all[1]["cache_salt"], "s");
  EXPECT_EQ(post("/v1/completions/render", json::object(), 400)["error"]["param"], "prompt");
}

TEST_F(CountHandlers, WhatIsWrongIsSaid) {
  EXPECT_EQ(post("/v1/chat/completions/input_tokens", json::object(), 400)["error"]["param"],
            "messages");
  EXPECT_EQ(post("/v1/responses/input_tokens", json::object(), 400)["error"]["param"], "input");
}

}  // namespace
}  // namespace foretoken
