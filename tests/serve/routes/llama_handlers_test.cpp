#include "serve/routes/llama_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class LlamaHandlers : public test::ServeRig {
 protected:
  static json ask(json more = json::object()) {
    json body = {{"prompt", "Once upon a time"}, {"n_predict", 6}, {"temperature", 0}};
    body.update(more);
    return body;
  }
};

TEST_F(LlamaHandlers, CompletionsAreThoseOfOpenAi) {
  const json body = post("/completion", ask());
  const json openai = post("/v1/completions",
                           {{"prompt", "Once upon a time"}, {"max_tokens", 6}, {"temperature", 0}});
  EXPECT_EQ(body["content"], openai["choices"][0]["text"]);
  EXPECT_EQ(post("/completions", ask())["content"], body["content"]);
}

TEST_F(LlamaHandlers, PromptsOfTextsAndIds) {
  const json ids = post("/tokenize", {{"content", "Once upon"}})["tokens"];
  json mixed = ids;
  mixed.push_back(" a time");
  const json content = post("/completion", ask())["content"];
  EXPECT_EQ(post("/completion", ask({{"prompt", mixed}}))["content"], content);
  EXPECT_EQ(
      post("/completion", ask({{"prompt", {{"prompt_string", "Once upon a time"}}}}))["content"],
      content);
  EXPECT_EQ(post("/completion", ask({{"prompt", {"Once upon a time", "The"}}})).size(), 2u);
}

TEST_F(LlamaHandlers, StreamsHaveNoDone) {
  const auto exchange = send("POST", "/completion", ask({{"stream", true}}).dump());
  EXPECT_EQ(exchange->body().find("[DONE]"), std::string::npos);
  EXPECT_EQ(exchange->header("X-Accel-Buffering"), "no");
  EXPECT_EQ(events(exchange->body()).back()["stop"], true);
}

TEST_F(LlamaHandlers, Embeddings) {
  const json body = post("/embedding", {{"content", "a cat"}});
  ASSERT_EQ(body.size(), 1u);
  EXPECT_EQ(body[0]["embedding"][0].size(), 256u);
  EXPECT_EQ(post("/embeddings", {{"input", "a cat"}}), body);
  post("/embedding", {{"content", "a"}, {"input", "b"}}, 400);
  post("/embedding", {{"content", "a"}, {"embd_normalize", 1}}, 400);
}

TEST_F(LlamaHandlers, Templates) {
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  EXPECT_EQ(post("/apply-template", {{"messages", messages}})["prompt"],
            "<|user|>Hi<|end|><|assistant|>");
}

TEST_F(LlamaHandlers, GapsNeedTokens) {
  post("/infill", {{"input_prefix", "a"}, {"input_suffix", "b"}}, 501);
  post("/infill", {{"input_prefix", "a"}}, 400);
}

}  // namespace
}  // namespace foretoken
