#include "engine/request/parameters/sampling_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace foretoken {
namespace {

const RequestLimits kLimits{.max_model_len = 100,
                            .max_blocks = 7,
                            .vocab_size = 50,
                            .drafters = {{"ngram", 4}},
                            .max_logprobs = 10,
                            .max_processor_rows = 4,
                            .hidden_size = 8,
                            .eos_token_ids = {2}};

class Nothing final : public LogitsProcessor {
 public:
  void apply(const LogitsContext&, std::span<float>) const override {}
};

// One way to be wrong: the change, and what the message must say.
struct Wrong {
  std::function<void(Request&)> change;
  std::vector<std::string> said;
};

constexpr float kNan = NAN;
constexpr float kInf = INFINITY;

std::vector<Wrong> wrong_numbers() {
  return {
      {[](Request& r) { r.sampling.temperature = -0.1f; },
       {"temperature is -0.1", "in [0, 1000000]"}},
      {[](Request& r) { r.sampling.temperature = kNan; }, {"temperature is nan"}},
      {[](Request& r) { r.sampling.temperature = kInf; }, {"temperature is inf"}},
      {[](Request& r) { r.sampling.top_p = 0; }, {"top_p is 0", "(0, 1]"}},
      {[](Request& r) { r.sampling.top_p = 1.5f; }, {"top_p is 1.5"}},
      {[](Request& r) { r.sampling.top_p = kNan; }, {"top_p"}},
      {[](Request& r) { r.sampling.top_k = -2; }, {"top_k is -2", "-1 or 0 (off)"}},
      {[](Request& r) { r.sampling.min_p = -0.5f; }, {"min_p is -0.5", "[0, 1]"}},
      {[](Request& r) { r.sampling.min_p = kNan; }, {"min_p"}},
      {[](Request& r) { r.sampling.presence_penalty = 2.5f; }, {"presence_penalty is 2.5"}},
      {[](Request& r) { r.sampling.presence_penalty = kNan; }, {"presence_penalty"}},
      {[](Request& r) { r.sampling.frequency_penalty = -3; }, {"frequency_penalty", "[-2, 2]"}},
      {[](Request& r) { r.sampling.frequency_penalty = kNan; }, {"frequency_penalty"}},
      {[](Request& r) { r.sampling.repetition_penalty = 0; }, {"repetition_penalty is 0"}},
      {[](Request& r) { r.sampling.repetition_penalty = kNan; }, {"repetition_penalty"}},
      {[](Request& r) { r.sampling.repetition_penalty = kInf; }, {"repetition_penalty"}},
      {[](Request& r) { r.sampling.n = 0; }, {"n is 0", "[1, 128]"}},
      {[](Request& r) { r.sampling.n = 129; }, {"n is 129", "[1, 128]"}},
      {[](Request& r) { r.sampling.max_tokens = 0; }, {"max_tokens is 0", "at least 1"}},
      {[](Request& r) { r.sampling.min_tokens = -1; }, {"min_tokens is -1"}},
      {[](Request& r) { r.sampling.min_tokens = 17; }, {"min_tokens is 17", "which is 16"}},
  };
}

std::vector<Wrong> wrong_lists() {
  return {
      {[](Request& r) { r.sampling.stop_token_ids = {1, 50}; }, {"stop_token_ids: token id 50"}},
      {[](Request& r) { r.sampling.stop_token_ids = {-1}; }, {"stop_token_ids: token id -1"}},
      {[](Request& r) { r.sampling.logit_bias = {{50, 1.0f}}; }, {"logit_bias: token id 50"}},
      {[](Request& r) { r.sampling.logit_bias = {{3, 100.5f}}; }, {"token id 3 is 100.5", "[-100"}},
      {[](Request& r) { r.sampling.logit_bias = {{3, kNan}}; }, {"logit_bias of token id 3"}},
      {[](Request& r) { r.sampling.logit_bias = {{3, 1}, {4, 1}, {3, 2}}; }, {"3 twice"}},
      {[](Request& r) { r.sampling.logit_bias.assign(1025, {3, 1.0f}); }, {"1025", "at most 1024"}},
      {[](Request& r) { r.sampling.allowed_token_ids.emplace(); },
       {"allowed_token_ids must not be empty"}},
      {[](Request& r) { r.sampling.allowed_token_ids = {{1, 50}}; }, {"allowed_token_ids: token"}},
      {[](Request& r) { r.sampling.logprobs = -2; }, {"logprobs is -2"}},
      {[](Request& r) { r.sampling.logprobs = 11; }, {"logprobs is 11", "--max-logprobs"}},
      {[](Request& r) { r.sampling.logprobs = -1; }, {"vocabulary of 50", "at most 10"}},
      {[](Request& r) { r.sampling.prompt_logprobs = 11; }, {"prompt_logprobs is 11"}},
      {[](Request& r) { r.sampling.stop = {"a", ""}; }, {"empty string"}},
      {[](Request& r) { r.sampling.logits_processors = {nullptr}; }, {"null pointer"}},
      {[](Request& r) { r.truncate_prompt_tokens = 0; }, {"truncate_prompt_tokens is 0"}},
      {[](Request& r) { r.truncate_prompt_tokens = -2; }, {"-1 (as many as fit)"}},
      {[](Request& r) { r.truncate_prompt_tokens = 101; }, {"which is 100"}},
      {[](Request& r) { r.priority = 1; }, {"--scheduling-policy priority"}},
  };
}

std::vector<Wrong> conflicts() {
  const auto pools = [](const std::function<void(SamplingParams&)>& change) {
    return [change](Request& r) {
      r.pooling = Pooling::kMean;
      change(r.sampling);
    };
  };
  const auto forms = [](const std::function<void(StructuredOutputs&)>& change) {
    return [change](Request& r) { change(r.sampling.structured_outputs.emplace()); };
  };
  return {
      {forms([](StructuredOutputs&) {}), {"structured_outputs names no form"}},
      {forms([](StructuredOutputs& s) {
         s.regex = "a";
         s.choice = {"a"};
       }),
       {"both regex and choice"}},
      {forms([](StructuredOutputs& s) {
         s.regex = "a";
         s.whitespace_pattern = " ";
       }),
       {"whitespace_pattern goes with json"}},
      {pools([](SamplingParams& s) { s.structured_outputs.emplace().regex = "a"; }),
       {"pooling", "structured_outputs"}},
      {[](Request& r) {
         r.sampling.n = 2;
         r.sampling.temperature = 0;
       },
       {"n is 2", "temperature 0"}},
      {[](Request& r) {
         r.sampling.detokenize = false;
         r.sampling.stop = {"x"};
       },
       {"stop strings need text"}},
      {[](Request& r) { r.queue_timeout_seconds = -1; }, {"queue_timeout_seconds is -1"}},
      {[](Request& r) { r.timeout_seconds = NAN; }, {"timeout_seconds is nan"}},
      {pools([](SamplingParams& s) { s.n = 2; }), {"pooling", "n above 1"}},
      {pools([](SamplingParams& s) { s.logprobs = 1; }), {"pooling", "logprobs"}},
      {pools([](SamplingParams& s) { s.prompt_logprobs = 1; }), {"pooling", "prompt_logprobs"}},
      {pools([](SamplingParams& s) { s.logit_bias = {{1, 1}}; }), {"pooling", "logit_bias"}},
      {pools([](SamplingParams& s) { s.bad_words = {"x"}; }), {"pooling", "bad_words"}},
      {pools([](SamplingParams& s) { s.allowed_token_ids = {{1}}; }), {"allowed_token_ids"}},
      {pools([](SamplingParams& s) { s.stop = {"x"}; }), {"pooling", "stop"}},
      {pools([](SamplingParams& s) { s.stop_token_ids = {1}; }), {"pooling", "stop_token_ids"}},
      {pools([](SamplingParams& s) { s.min_tokens = 1; }), {"pooling", "min_tokens"}},
      {pools([](SamplingParams& s) { s.logits_processors = {std::make_shared<Nothing>()}; }),
       {"pooling", "logits_processors"}},
  };
}

void expect_sampling_refused(const Wrong& wrong) {
  Request request;
  request.prompt_token_ids = {1, 2};
  ASSERT_TRUE(check_request(request, kLimits, true).ok());
  wrong.change(request);
  const Status status = check_request(request, kLimits, true);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << wrong.said[0];
  for (const std::string& part : wrong.said) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST(SamplingChecks, NumbersOutOfRange) {
  for (const Wrong& wrong : wrong_numbers()) expect_sampling_refused(wrong);
}

TEST(SamplingChecks, ListsAndWishesOutOfRange) {
  for (const Wrong& wrong : wrong_lists()) expect_sampling_refused(wrong);
}

TEST(SamplingChecks, FieldsThatExcludeOneAnother) {
  for (const Wrong& wrong : conflicts()) expect_sampling_refused(wrong);
}

TEST(SamplingChecks, WhatTheEngineWasStartedWithout) {
  RequestLimits bare = kLimits;
  bare.max_logprobs = 0;
  bare.max_processor_rows = 0;
  Request request;
  request.sampling.logprobs = 0;
  EXPECT_NE(check_request(request, bare, true).message().find("--max-logprobs"), std::string::npos);
  request = {};
  request.sampling.logits_processors = {std::make_shared<Nothing>()};
  EXPECT_NE(check_request(request, bare, true).message().find("--max-processor-rows"),
            std::string::npos);
  EXPECT_TRUE(check_request(request, kLimits, true).ok());
  request = {};
  request.sampling.stop = {"x"};
  EXPECT_NE(check_request(request, kLimits, false).message().find("tokenizer"), std::string::npos);
  request = {};
  request.sampling.bad_words = {"x"};
  EXPECT_NE(check_request(request, kLimits, false).message().find("tokenizer"), std::string::npos);
  request = {};
  request.sampling.structured_outputs.emplace().json_object = true;
  EXPECT_TRUE(check_request(request, kLimits, true).ok());
  EXPECT_NE(check_request(request, kLimits, false).message().find("tokenizer"), std::string::npos);
  bare.engine.is_synthetic = true;
  EXPECT_NE(check_request(request, bare, true).message().find("synthetic"), std::string::npos);
}

TEST(SamplingChecks, TheEdgesOfTheRangesAreIn) {
  Request request;
  SamplingParams& s = request.sampling;
  s.n = 128;
  s.top_p = 1e-6f;
  s.top_k = -1;
  s.min_p = 1;
  s.presence_penalty = -2;
  s.frequency_penalty = 2;
  s.repetition_penalty = 0.01f;
  s.logit_bias = {{0, -100.0f}, {49, 100.0f}};
  s.allowed_token_ids = {{0, 49}};
  s.logprobs = 10;
  s.prompt_logprobs = 0;
  s.min_tokens = s.max_tokens;
  request.truncate_prompt_tokens = 100;
  const Status status = check_request(request, kLimits, true);
  EXPECT_TRUE(status.ok()) << status.message();
  RequestLimits whole = kLimits;
  whole.engine.whole_prompts = true;
  EXPECT_NE(check_request(request, whole, true).message().find("prompt_logprobs"),
            std::string::npos);
  RequestLimits reader = kLimits;
  reader.engine.bidirectional = true;
  reader.engine.architecture = "BertModel";
  EXPECT_EQ(check_request({}, reader, true).message(),
            "'BertModel' reads a text from both ends and writes none; ask it for embeddings "
            "(/v1/embeddings, foretoken embed)");
  RequestLimits small = kLimits;
  small.vocab_size = 10;
  EXPECT_EQ(num_alternatives(-1, small), 10);
  // Greedy choices can differ through processors, which see the choice.
  request = {};
  request.sampling.n = 2;
  request.sampling.temperature = 0;
  request.sampling.logits_processors = {std::make_shared<Nothing>()};
  EXPECT_TRUE(check_request(request, kLimits, true).ok());
}

}  // namespace
}  // namespace foretoken
