#include "serve/llamacpp/llama_request.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OpenAiDefaults defaults() {
  OpenAiDefaults all;
  all.max_model_len = 100;
  return all;
}

LlamaRequest parsed(json body) {
  if (!body.contains("prompt")) body["prompt"] = "a";
  auto request = parse_llama_request(body, defaults());
  EXPECT_TRUE(request.ok()) << body << request.status().message();
  return request.ok() ? std::move(request).value() : LlamaRequest();
}

const SamplingParams& sampling(const LlamaRequest& request) {
  return request.text.requests.front().sampling;
}

TEST(LlamaRequest, LengthsGoToTheEndUnlessToldOtherwise) {
  EXPECT_EQ(sampling(parsed({})).max_tokens, 100);
  EXPECT_EQ(sampling(parsed({{"n_predict", -1}})).max_tokens, 100);
  EXPECT_EQ(sampling(parsed({{"n_predict", 7}, {"max_tokens", 3}})).max_tokens, 7);
  EXPECT_EQ(sampling(parsed({{"max_tokens", 3}})).max_tokens, 3);
  EXPECT_TRUE(parsed({{"n_predict", 0}}).no_output);
  EXPECT_FALSE(parsed({{"n_predict", 1}}).no_output);
}

TEST(LlamaRequest, ItsNamesMeanWhatTheyMeanThere) {
  const LlamaRequest request = parsed({{"repeat_penalty", 1.5},
                                       {"temperature", -1},
                                       {"top_k", -5},
                                       {"seed", 4294967295u},
                                       {"stop", {"x", ""}},
                                       {"n_probs", 4},
                                       {"return_tokens", true},
                                       {"timings_per_token", true},
                                       {"logit_bias", {{3, false}, {4, 1.5}}}});
  EXPECT_FLOAT_EQ(sampling(request).repetition_penalty, 1.5f);
  EXPECT_EQ(sampling(request).temperature, 0);
  EXPECT_EQ(sampling(request).top_k, 0);
  EXPECT_FALSE(sampling(request).seed);
  EXPECT_EQ(sampling(request).stop, std::vector<std::string>{"x"});
  EXPECT_EQ(sampling(request).logprobs, 4);
  EXPECT_TRUE(request.return_tokens);
  EXPECT_TRUE(request.text.timings);
  const std::vector<std::pair<int32_t, float>> bias = {{3, -100.0f}, {4, 1.5f}};
  EXPECT_EQ(sampling(request).logit_bias, bias);
}

TEST(LlamaRequest, FormsAreEnforced) {
  EXPECT_EQ(sampling(parsed({{"grammar", "root ::= \"a\""}})).structured_outputs->grammar,
            "root ::= \"a\"");
  EXPECT_FALSE(
      sampling(parsed({{"json_schema", {{"type", "object"}}}})).structured_outputs->json.empty());
  EXPECT_TRUE(sampling(parsed({{"json_schema", json::object()}})).structured_outputs->json_object);
  EXPECT_FALSE(sampling(parsed({{"grammar", ""}})).structured_outputs);
  const json both = {{"prompt", "a"}, {"grammar", "x"}, {"json_schema", json::object()}};
  EXPECT_FALSE(parse_llama_request(both, defaults()).ok());
}

TEST(LlamaRequest, WhatOtherSamplersWouldDoIsAWarning) {
  const std::vector<std::string> warnings =
      parsed({{"mirostat", 2}, {"typical_p", 0.5}}).text.warnings;
  EXPECT_GE(warnings.size(), 2u);
  EXPECT_TRUE(
      parsed({{"mirostat", 0}, {"typical_p", 1.0}, {"samplers", {"top_k"}}}).text.warnings.empty());
}

TEST(LlamaRequest, CachingIsTurnedOffByASaltOfItsOwn) {
  const json body = {{"cache_prompt", false}};
  const std::string one = parsed(body).text.requests.front().cache_salt;
  EXPECT_FALSE(one.empty());
  EXPECT_NE(one, parsed(body).text.requests.front().cache_salt);
  EXPECT_TRUE(parsed({}).text.requests.front().cache_salt.empty());
}

TEST(LlamaRequest, SettingsTellTheSampling) {
  SamplingParams params;
  params.max_tokens = 5;
  params.repetition_penalty = 1.25f;
  params.stop = {"x"};
  const json settings = llama_settings(params, true);
  EXPECT_EQ(settings["n_predict"], 5);
  EXPECT_EQ(settings["repeat_penalty"], 1.25);
  EXPECT_EQ(settings["stop"], (json{"x"}));
  EXPECT_EQ(settings["stream"], true);
}

TEST(LlamaRequest, FieldsAreChosenByPath) {
  const json body = {{"a", 1}, {"b", {{"c", 2}, {"d", 3}}}};
  EXPECT_EQ(chosen_fields(body, {}), body);
  EXPECT_EQ(chosen_fields(body, {"a", "b/c", "x", "a/b"}), (json{{"a", 1}, {"b/c", 2}}));
}

}  // namespace
}  // namespace foretoken
