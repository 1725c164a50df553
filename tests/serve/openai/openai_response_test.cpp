#include "serve/openai/openai_response.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

const OpenAiLabel kLabel = {"cmpl-1", "m", 5};

OpenAiRequest parsed(OpenAiKind kind, const char* text) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 50;
  return parse_openai_request(kind, json::parse(text), defaults).value();
}

RequestOutput choice(int index, const std::string& text) {
  RequestOutput output;
  output.index = index;
  output.text = text;
  output.token_ids = {1, 2};
  output.logprobs = {{{1, -1.0f, 1, text}, {}}};
  output.finished = true;
  output.finish_reason = FinishReason::kStop;
  output.stats.num_prompt_tokens = 3;
  output.stats.num_output_tokens = 2;
  return output;
}

TEST(OpenAiResponse, Chat) {
  const OpenAiRequest request =
      parsed(OpenAiKind::kChat,
             R"({"messages": [{"role": "user", "content": "x"}], "n": 2, "logprobs": true})");
  OutputSum sum(2);
  sum.add(choice(1, "b"));
  sum.add(choice(0, "a"));
  const json body = openai_response(request, {&sum}, {}, kLabel);
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["created"], 5);
  ASSERT_EQ(body["choices"].size(), 2u);
  EXPECT_EQ(body["choices"][0]["message"]["content"], "a");
  EXPECT_EQ(body["choices"][1]["index"], 1);
  EXPECT_EQ(body["choices"][1]["finish_reason"], "stop");
  EXPECT_EQ(body["choices"][0]["logprobs"]["content"][0]["token"], "a");
  EXPECT_EQ(body["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(body["usage"]["completion_tokens"], 4);
  EXPECT_EQ(body["usage"]["total_tokens"], 7);
}

// Choice 0 alone comes with them.
TEST(OpenAiResponse, LogProbabilitiesOfThePromptHoldForEveryChoice) {
  const OpenAiRequest request =
      parsed(OpenAiKind::kCompletion,
             R"({"prompt": "ab", "n": 2, "echo": true, "logprobs": 0, "prompt_logprobs": 0})");
  RequestOutput first = choice(0, "c");
  first.prompt_logprobs = {{{2, -1.0f, 1, "b"}, {}}};
  OutputSum sum(2);
  sum.add(choice(1, "d"));
  sum.add(first);
  const json body = openai_response(request, {&sum}, {"ab"}, kLabel);
  for (const auto& [i, text] : {std::pair(0, "c"), std::pair(1, "d")}) {
    const json& told = body["choices"][static_cast<size_t>(i)];
    EXPECT_EQ(told["text"], std::string("ab") + text);
    EXPECT_EQ(told["logprobs"]["tokens"], (json{"a", "b", text}));
    EXPECT_EQ(told["prompt_logprobs"].size(), 2u);
  }
}

TEST(OpenAiResponse, MetricsOfSpeculationWhereWanted) {
  const OpenAiRequest request = parsed(OpenAiKind::kCompletion, R"({"prompt": "p"})");
  RequestOutput drafted = choice(0, "a");
  drafted.stats.num_drafts = 2;
  drafted.stats.num_draft_tokens = 4;
  drafted.stats.num_accepted_tokens = 1;
  drafted.stats.num_accepted_tokens_per_pos = {1};
  OutputSum sum;
  sum.add(drafted);
  const json plain = openai_response(request, {&sum}, {"p"}, kLabel);
  EXPECT_FALSE(plain.contains("metrics"));
  EXPECT_FALSE(plain.contains("system_fingerprint"));
  OpenAiLabel label = kLabel;
  label.num_spec_tokens = 2;
  label.synthetic_acceptance = true;
  const json body = openai_response(request, {&sum}, {"p"}, label);
  EXPECT_EQ(body["system_fingerprint"], "synthetic-acceptance");
  const json& metrics = body["metrics"]["speculative_decoding"];
  EXPECT_EQ(metrics["mean_acceptance_length"], 1.5);
  EXPECT_EQ(metrics["acceptance_histogram"].dump(), "[1,1,0]");
  const OpenAiRequest two = parsed(OpenAiKind::kCompletion, R"({"prompt": ["p", "q"]})");
  const json several = openai_response(two, {&sum, &sum}, {"p", "q"}, label);
  EXPECT_TRUE(several["metrics"]["speculative_decoding"].is_null());
}

TEST(OpenAiResponse, CompletionsAreNumberedThroughAllPrompts) {
  const OpenAiRequest request = parsed(
      OpenAiKind::kCompletion, R"({"prompt": ["p", "q"], "echo": true, "stop_token_ids": [7]})");
  OutputSum first;
  OutputSum second;
  first.add(choice(0, "a"));
  RequestOutput stopped = choice(0, "b");
  stopped.stop_reason = "7";
  second.add(stopped);
  const json body = openai_response(request, {&first, &second}, {"p", "q"}, kLabel);
  ASSERT_EQ(body["choices"].size(), 2u);
  EXPECT_EQ(body["choices"][0]["text"], "pa");
  EXPECT_EQ(body["choices"][1]["text"], "qb");
  EXPECT_EQ(body["choices"][1]["index"], 1);
  EXPECT_EQ(body["choices"][1]["stop_reason"], 7);
  EXPECT_TRUE(body["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(body["usage"]["prompt_tokens"], 6);
}

TEST(OpenAiResponse, PromptOnly) {
  const OpenAiRequest request =
      parsed(OpenAiKind::kCompletion,
             R"({"prompt": "one two", "echo": true, "max_tokens": 0, "logprobs": 0})");
  OutputSum sum;
  RequestOutput output = choice(0, "never seen");
  output.prompt_logprobs = {{{4, -2.0f, 1, " two"}, {}}};
  sum.add(output);
  const json body = openai_response(request, {&sum}, {"one two"}, kLabel);
  EXPECT_EQ(body["choices"][0]["text"], "one two");
  EXPECT_EQ(body["choices"][0]["logprobs"]["tokens"], (json{"one", " two"}));
  EXPECT_EQ(body["usage"]["completion_tokens"], 0);
}

TEST(OpenAiResponse, TheTokenBehindAPromptAloneIsNotTold) {
  const OpenAiRequest request =
      parsed(OpenAiKind::kCompletion, R"({"prompt": [3, 4], "echo": true, "max_tokens": 0,
        "logprobs": 0, "return_token_ids": true, "return_tokens_as_token_ids": true})");
  OutputSum sum;
  RequestOutput output = choice(0, "never seen");
  output.token_ids = {9};
  output.stats.num_prompt_tokens = 2;
  output.prompt_logprobs = {{{4, -2.0f, 1, " two"}, {}}};
  sum.add(output);
  const json told = openai_response(request, {&sum}, {"one two"}, kLabel)["choices"][0];
  EXPECT_EQ(told["token_ids"], json::array());
  EXPECT_EQ(told["prompt_token_ids"], (json{3, 4}));
  EXPECT_EQ(told["logprobs"]["tokens"], (json{"token_id:3", "token_id:4"}));
}

// Clients read these by name, as vLLM's answers always have them.
TEST(OpenAiResponse, WhatWasNotAskedForIsNull) {
  OutputSum sum;
  sum.add(choice(0, "a"));
  const json text = openai_response(parsed(OpenAiKind::kCompletion, R"({"prompt": "p"})"), {&sum},
                                    {}, kLabel)["choices"][0];
  for (const char* name : {"prompt_logprobs", "prompt_token_ids", "token_ids"}) {
    EXPECT_TRUE(text.contains(name) && text[name].is_null()) << name;
  }
  const json chat = openai_response(
      parsed(OpenAiKind::kChat, R"({"messages": [{"role": "user", "content": "x"}]})"), {&sum}, {},
      kLabel);
  EXPECT_TRUE(chat.contains("prompt_token_ids") && chat["prompt_token_ids"].is_null());
  EXPECT_TRUE(chat["choices"][0].contains("token_ids"));
}

TEST(OpenAiResponse, Embeddings) {
  OutputSum sum;
  RequestOutput output = choice(0, "");
  output.embedding = {1.0f, -2.0f};
  sum.add(output);
  const json floats =
      openai_response(parsed(OpenAiKind::kEmbedding, R"({"input": "a"})"), {&sum}, {}, kLabel);
  EXPECT_EQ(floats["data"][0]["embedding"], (json{1.0, -2.0}));
  EXPECT_EQ(floats["usage"]["total_tokens"], 3);
  const json base64 = openai_response(
      parsed(OpenAiKind::kEmbedding, R"({"input": "a", "encoding_format": "base64"})"), {&sum}, {},
      kLabel);
  EXPECT_EQ(base64["data"][0]["embedding"], "AACAPwAAAMA=");
}

TEST(OpenAiResponse, Errors) {
  const json error = openai_error(Status{StatusCode::kInvalidArgument, "'top_p' must be a number"});
  EXPECT_EQ(error["error"]["param"], "top_p");
  EXPECT_EQ(error["error"]["code"], 400);
  EXPECT_EQ(http_status({StatusCode::kNotFound, "x"}), 404);
  EXPECT_EQ(http_status(Status()), 200);
  const std::string id = make_openai_id("cmpl");
  EXPECT_EQ(id.size(), 5u + 32u);
  EXPECT_NE(id, make_openai_id("cmpl"));
}

}  // namespace
}  // namespace foretoken
