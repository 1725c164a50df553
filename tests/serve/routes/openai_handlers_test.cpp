#include "serve/routes/openai_handlers.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class OpenAiHandlers : public test::ServeRig {
 protected:
  static json chat(const char* text, int max_tokens = 8) {
    return {{"messages", {{{"role", "user"}, {"content", text}}}}, {"max_tokens", max_tokens}};
  }
};

TEST_F(OpenAiHandlers, ChatWholeAndStreamed) {
  json body = chat("Hi");
  body["temperature"] = 0;
  const json whole = post("/v1/chat/completions", body);
  EXPECT_EQ(whole["model"], "tiny");
  EXPECT_EQ(whole["id"], "chatcmpl-test-id");
  EXPECT_EQ(whole["choices"][0]["message"]["role"], "assistant");
  body["stream"] = true;
  body["model"] = "other";
  body["stream_options"] = {{"include_usage", true}, {"continuous_usage_stats", true}};
  body["return_token_ids"] = true;
  const auto exchange = send("POST", "/v1/chat/completions", body.dump());
  const std::vector<json> all = events(exchange->body());
  EXPECT_EQ(all.front()["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(all.front()["prompt_token_ids"].size(), whole["usage"]["prompt_tokens"]);
  std::string text;
  for (const json& event : all) {
    EXPECT_EQ(event["model"], "other");
    EXPECT_TRUE(event.contains("usage"));
    for (const json& choice : event["choices"]) text += choice["delta"].value("content", "");
  }
  EXPECT_EQ(text, whole["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_TRUE(all.back()["choices"].empty());
  EXPECT_EQ(all.back()["usage"], whole["usage"]);
}

TEST_F(OpenAiHandlers, LogprobsOfChats) {
  json body = chat("Hi");
  body.update({{"logprobs", true}, {"top_logprobs", 2}, {"return_tokens_as_token_ids", true}});
  const json whole = post("/v1/chat/completions", body);
  const json& content = whole["choices"][0]["logprobs"]["content"];
  EXPECT_EQ(content.size(), whole["usage"]["completion_tokens"]);
  EXPECT_EQ(content[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(content[0]["token"].get<std::string>().rfind("token_id:", 0), 0u);
}

TEST_F(OpenAiHandlers, EchoOfTokenIds) {
  const json ids = post("/tokenize", {{"prompt", "Once upon"}})["tokens"];
  const json whole = post("/v1/completions", {{"prompt", ids},
                                              {"echo", true},
                                              {"max_tokens", 2},
                                              {"logprobs", 0},
                                              {"return_token_ids", true}});
  const std::string text = whole["choices"][0]["text"];
  EXPECT_EQ(text.rfind("Once upon", 0), 0u) << text;
  EXPECT_EQ(whole["choices"][0]["logprobs"]["tokens"].size(), ids.size() + 2);
  EXPECT_EQ(whole["choices"][0]["prompt_token_ids"], ids);
}

TEST_F(OpenAiHandlers, Embeddings) {
  const json floats = post("/v1/embeddings", {{"input", {"a", "b"}}});
  ASSERT_EQ(floats["data"].size(), 2u);
  EXPECT_GT(floats["data"][0]["embedding"].size(), 10u);
  EXPECT_EQ(floats["usage"]["prompt_tokens"], floats["usage"]["total_tokens"]);
  const json base64 = post("/v1/embeddings", {{"input", "a"}, {"encoding_format", "base64"}});
  EXPECT_TRUE(base64["data"][0]["embedding"].is_string());
}

TEST_F(OpenAiHandlers, WhatIsWrongIsSaid) {
  const auto message = [&](const json& body, int status) {
    return post("/v1/chat/completions", body, status)["error"]["message"].get<std::string>();
  };
  EXPECT_NE(message({{"messages", 3}}, 400).find("'messages' must be"), std::string::npos);
  json body = chat("Hi");
  body["model"] = "nope";
  EXPECT_NE(message(body, 404).find("the model `nope` does not exist; this server has '"),
            std::string::npos);
  const json error = post("/v1/chat/completions", body, 404)["error"];
  EXPECT_EQ(error["type"], "NotFoundError");
  EXPECT_EQ(error["param"], "model");
  EXPECT_NE(message(body, 404).find("--served-model-name"), std::string::npos);
  body = chat("Hi");
  body["tools"] = {{{"type", "function"}, {"function", {{"name", "f"}}}}};
  EXPECT_NE(message(body, 400).find("--tool-call-parser"), std::string::npos);
  body["tool_choice"] = "none";
  post("/v1/chat/completions", body);
  EXPECT_EQ(send("POST", "/v1/chat/completions", "{\"a\"")->status(), 400);
  EXPECT_EQ(send("POST", "/v1/chat/completions", "")->status(), 400);
}

TEST_F(OpenAiHandlers, APromptLongerThanTheModelIsRefused) {
  std::string prompt;
  for (int i = 0; i < 600; ++i) prompt += "word ";
  const json error = post("/v1/completions", {{"prompt", prompt}}, 400);
  EXPECT_NE(
      error["error"]["message"].get<std::string>().find("maximum context length is 512 tokens"),
      std::string::npos);
}

}  // namespace
}  // namespace foretoken
