#include "serve/fields/sampling_fields.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/sampling_ranges.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Status read_sampling(const json& object, SamplingParams* sampling) {
  JsonFields fields(object, "");
  read_sampling_fields(fields, sampling);
  read_logprob_counts(fields, sampling);
  fields.refuse_unread();
  return fields.status();
}

TEST(SamplingFields, EveryFieldIsRead) {
  const json object = json::parse(R"({
    "n": 3, "max_tokens": 7, "min_tokens": 2, "temperature": 0.5, "top_p": 0.25, "top_k": 9,
    "min_p": 0.125, "presence_penalty": -1, "frequency_penalty": 1.5, "repetition_penalty": 1.25,
    "seed": 18446744073709551615, "logit_bias": {"7": -100, "8": 2.5}, "bad_words": ["x", "y z"],
    "allowed_token_ids": [1, 2], "logprobs": 4, "prompt_logprobs": 0, "stop": "end",
    "stop_token_ids": [5], "include_stop_str_in_output": true, "ignore_eos": true,
    "detokenize": false, "skip_special_tokens": false, "spaces_between_special_tokens": false})");
  SamplingParams s;
  const Status status = read_sampling(object, &s);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(s.n, 3);
  EXPECT_EQ(s.max_tokens, 7);
  EXPECT_EQ(s.min_tokens, 2);
  EXPECT_EQ(s.temperature, 0.5f);
  EXPECT_EQ(s.top_p, 0.25f);
  EXPECT_EQ(s.top_k, 9);
  EXPECT_EQ(s.min_p, 0.125f);
  EXPECT_EQ(s.presence_penalty, -1.0f);
  EXPECT_EQ(s.frequency_penalty, 1.5f);
  EXPECT_EQ(s.repetition_penalty, 1.25f);
  EXPECT_EQ(s.seed, UINT64_MAX);
  EXPECT_EQ(s.logit_bias, (std::vector<std::pair<int32_t, float>>{{7, -100.0f}, {8, 2.5f}}));
  EXPECT_EQ(s.bad_words, (std::vector<std::string>{"x", "y z"}));
  EXPECT_EQ(s.allowed_token_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(s.logprobs, 4);
  EXPECT_EQ(s.prompt_logprobs, 0);
  EXPECT_EQ(s.stop, std::vector<std::string>{"end"});
  EXPECT_EQ(s.stop_token_ids, std::vector<int32_t>{5});
  EXPECT_TRUE(s.include_stop_str_in_output);
  EXPECT_TRUE(s.ignore_eos);
  EXPECT_FALSE(s.detokenize);
  EXPECT_FALSE(s.skip_special_tokens);
  EXPECT_FALSE(s.spaces_between_special_tokens);
}

TEST(SamplingFields, NoLogprobsAreNotZeroOfThem) {
  SamplingParams sampling;
  ASSERT_TRUE(read_sampling(json::parse(R"({"logprobs": false})"), &sampling).ok());
  EXPECT_FALSE(sampling.logprobs.has_value());
  ASSERT_TRUE(read_sampling(json::parse(R"({"logprobs": 0})"), &sampling).ok());
  EXPECT_EQ(sampling.logprobs, 0);
  ASSERT_TRUE(read_sampling(json::parse(R"({"logprobs": true})"), &sampling).ok());
  EXPECT_EQ(sampling.logprobs, 1);
}

TEST(SamplingFields, EmptyStopsArePassedOver) {
  for (const char* text : {R"({"stop": ""})", R"({"stop": ["", "x", ""]})"}) {
    const json object = json::parse(text);
    std::vector<std::string> warnings;
    JsonFields fields(object, "", {.warnings = &warnings});
    SamplingParams sampling;
    read_sampling_fields(fields, &sampling);
    EXPECT_TRUE(fields.status().ok());
    EXPECT_EQ(warnings.size(), 1u);
    EXPECT_EQ(sampling.stop, object["stop"].is_string() ? std::vector<std::string>()
                                                        : std::vector<std::string>{"x"});
  }
}

TEST(SamplingFields, WrongTypesAreNamed) {
  for (const char* text :
       {R"({"seed": 0.5})", R"({"logit_bias": {"x": 1}})", R"({"logit_bias": [1]})",
        R"({"top_k": 1.5})", R"({"bad_words": [1]})", R"({"allowed_token_ids": "all"})",
        R"({"n": 1.5})", R"({"temperature": "hot"})"}) {
    const json object = json::parse(text);
    SamplingParams sampling;
    const Status status = read_sampling(object, &sampling);
    EXPECT_FALSE(status.ok()) << text;
    const std::string name = object.begin().key();
    EXPECT_EQ(status.message().rfind("'" + name + "' must be", 0), 0u) << status.message();
  }
}

TEST(SamplingFields, SeedOfMinusOneIsNone) {
  SamplingParams sampling;
  sampling.seed = 5;
  ASSERT_TRUE(read_sampling({{"seed", -1}}, &sampling).ok());
  EXPECT_FALSE(sampling.seed.has_value());
  ASSERT_TRUE(read_sampling({{"seed", -2}}, &sampling).ok());
  EXPECT_EQ(sampling.seed, UINT64_MAX - 1);
}

TEST(SamplingFields, NumbersMayBeTextAndBiasesAreCut) {
  SamplingParams s;
  ASSERT_TRUE(
      read_sampling(
          json::parse(R"({"max_tokens": "16", "temperature": "0.7", "seed": " -1 ", "n": true,
                           "ignore_eos": "yes", "logit_bias": {"3": "101", "4": -1000, "5": "-0.5"}})"),
          &s)
          .ok());
  EXPECT_EQ(s.max_tokens, 16);
  EXPECT_FLOAT_EQ(s.temperature, 0.7F);
  EXPECT_FALSE(s.seed.has_value());
  EXPECT_EQ(s.n, 1);
  EXPECT_TRUE(s.ignore_eos);
  EXPECT_EQ(s.logit_bias, (std::vector<std::pair<int32_t, float>>{{3, 100}, {4, -100}, {5, -0.5}}));
}

TEST(SamplingFields, RangesAreCheckedByName) {
  const std::vector<std::pair<json, std::string>> bad = {
      {{{"n", 0}}, "n"},
      {{{"n", 1000000000}}, "n"},
      {{{"max_tokens", 0}}, "max_tokens"},
      {{{"min_tokens", 17}}, "min_tokens"},
      {{{"temperature", -0.5}}, "temperature"},
      {{{"top_p", 0}}, "top_p"},
      {{{"top_p", 1.5}}, "top_p"},
      {{{"top_k", -2}}, "top_k"},
      {{{"min_p", 2}}, "min_p"},
      {{{"presence_penalty", 3}}, "presence_penalty"},
      {{{"frequency_penalty", -3}}, "frequency_penalty"},
      {{{"repetition_penalty", 0}}, "repetition_penalty"},
      {{{"logprobs", -2}}, "logprobs"},
      {{{"prompt_logprobs", -2}}, "prompt_logprobs"},
      {{{"allowed_token_ids", json::array()}}, "allowed_token_ids"},
      {{{"bad_words", {""}}}, "bad_words"},
      {{{"stop", "x"}, {"detokenize", false}}, "stop"}};
  for (const auto& [object, name] : bad) {
    SamplingParams sampling;
    ASSERT_TRUE(read_sampling(object, &sampling).ok()) << object;
    const Status status = check_sampling_ranges(sampling);
    EXPECT_FALSE(status.ok()) << object;
    EXPECT_EQ(status.message().rfind(name, 0), 0u) << status.message();
  }
  SamplingParams nan;
  nan.temperature = std::nanf("");
  EXPECT_FALSE(check_sampling_ranges(nan).ok());
  EXPECT_TRUE(check_sampling_ranges(SamplingParams()).ok());
}

TEST(SamplingFields, RequestFields) {
  const json object =
      json::parse(R"({"priority": -3, "cache_salt": "x", "add_special_tokens": false,
      "truncate_prompt_tokens": -1, "truncation_side": "right", "speculative": {"enabled": true, "num_speculative_tokens": 2}})");
  JsonFields fields(object, "");
  Request request;
  read_request_fields(fields, &request);
  fields.refuse_unread();
  ASSERT_TRUE(fields.status().ok()) << fields.status().message();
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.cache_salt, "x");
  EXPECT_FALSE(request.add_special_tokens);
  EXPECT_EQ(request.truncate_prompt_tokens, -1);
  EXPECT_EQ(request.truncation_side, TruncationSide::kRight);
  EXPECT_EQ(request.speculative.enabled, true);
  EXPECT_EQ(request.speculative.num_speculative_tokens, 2);
  const json wrong = {{"speculative", {{"enable", true}}}};
  JsonFields other(wrong, "");
  read_request_fields(other, &request);
  EXPECT_NE(other.status().message().find("did you mean 'enabled'?"), std::string::npos);
}

Status read_speculation(const char* text, SpeculativeParams* params) {
  return read_speculative_params(json::parse(text), "'speculative'", params);
}

TEST(SamplingFields, Speculation) {
  SpeculativeParams params;
  params.num_speculative_tokens = 3;
  ASSERT_TRUE(read_speculation(R"({"method": "eagle3"})", &params).ok());
  EXPECT_EQ(params.method, "eagle3");
  EXPECT_EQ(params.num_speculative_tokens, 3) << "what is not there stays";
  EXPECT_TRUE(read_speculation(R"({"method": null})", &params).ok());
  EXPECT_EQ(params.method, "eagle3");
  for (const char* empty : {R"({"method": ""})", R"({"method": [""]})"}) {
    params.method = "eagle3";
    ASSERT_TRUE(read_speculation(empty, &params).ok());
    EXPECT_EQ(params.method, "+") << "which the engine refuses";
  }
  EXPECT_TRUE(read_speculation(R"({"enabled": false})", &params).ok());
  EXPECT_TRUE(read_speculation(R"({"enabled": false, "num_speculative_tokens": 0})", &params).ok());
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"method": 3})", "'method' must be a string"},
      {R"({"method": []})", "'method' must be a name or a list of names"},
      {R"({"num_speculative_tokens": -1})", "at least 0, not -1"},
      {R"({"num_speculative_tokens": "two"})", "must be an integer"},
      {R"({"enabled": false, "method": "ngram"})", "leaves nothing for 'method'"},
      {R"({"enabled": false, "num_speculative_tokens": 2})",
       "leaves nothing for 'num_speculative_tokens'"},
      {R"({"methods": "ngram"})", "did you mean 'method'?"}};
  for (const auto& [text, part] : wrong) {
    SpeculativeParams unused;
    const Status status = read_speculation(text, &unused);
    EXPECT_NE(status.message().find(part), std::string::npos) << text << status.message();
    EXPECT_EQ(status.message().rfind("'speculative'", 0), 0u) << status.message();
  }
}

}  // namespace
}  // namespace foretoken
