#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/harness.h"
#include "model/files/containers/safetensors.h"
#include "support/folders.h"

// Pooled states: the last one times the head gives the logits that transformers computed; the
// others follow from last ones of prefixes, since attention is causal.

namespace foretoken {
namespace {

std::string pooling_path(const std::string& file) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/tiny-llama/" + file;
}

std::unique_ptr<Engine> pooling_engine(const Variant& variant) {
  EngineConfig config = config_of(variant, pooling_path(""));
  config.max_model_len = 0;
  config.dtype = "float32";
  config.skip_tokenizer_init = true;
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  EXPECT_TRUE(made.ok()) << made.message();
  return engine;
}

Request pooling_request(std::vector<int32_t> ids, Pooling pooling, bool normalize = false) {
  Request request;
  request.prompt_token_ids = std::move(ids);
  request.pooling = pooling;
  request.normalize = normalize;
  return request;
}

std::vector<float> pooled(Engine& engine, const Request& request) {
  const RequestOutput output = engine.generate({request})[0];
  EXPECT_TRUE(output.status.ok()) << output.status.message();
  EXPECT_EQ(output.finish_reason, FinishReason::kStop);
  EXPECT_TRUE(output.token_ids.empty());
  EXPECT_TRUE(output.text.empty());
  return output.embedding;
}

// A matrix [rows, cols] of floats from a file, which may lie unaligned.
std::vector<float> read_floats(const TensorView& view) {
  EXPECT_EQ(view.dtype, FileDType::kF32);
  std::vector<float> values(static_cast<size_t>(view.num_elements()));
  std::memcpy(values.data(), view.data, values.size() * sizeof(float));
  return values;
}

TEST(Pooling, TheLastStateGivesTheReferencesLogits) {
  const auto engine = pooling_engine({.num_draft_tokens = 4, .steps_in_flight = 2});
  const auto weights = SafetensorsFile::open(pooling_path("model-00001-of-00002.safetensors"));
  const auto golden = SafetensorsFile::open(pooling_path("golden.safetensors"));
  ASSERT_TRUE(weights.ok() && golden.ok());
  const std::vector<float> head = read_floats(weights.value()->tensors().at("lm_head.weight"));
  std::ifstream file(pooling_path("golden.json"));
  const nlohmann::json json = nlohmann::json::parse(file);
  for (size_t i = 0; i < 3; ++i) {
    const auto ids = json.at("fp32")[i].at("ids").get<std::vector<int32_t>>();
    const std::vector<float> state = pooled(*engine, pooling_request(ids, Pooling::kLast));
    const std::vector<float> logits =
        read_floats(golden.value()->tensors().at("prompt" + std::to_string(i) + ".logits.fp32"));
    const size_t vocab = head.size() / state.size();
    const float* last = logits.data() + logits.size() - vocab;
    for (size_t token = 0; token < vocab; ++token) {
      double logit = 0;
      for (size_t j = 0; j < state.size(); ++j)
        logit += double{state[j]} * head[token * state.size() + j];
      ASSERT_NEAR(logit, last[token], 1e-4) << "prompt " << i << ", token " << token;
    }
  }
}

TEST(Pooling, MeanAndClsFollowFromTheLastStatesOfPrefixes) {
  // Chunks of 8 rows, so that a mean goes over several steps.
  const auto engine = pooling_engine({.steps_in_flight = 2, .max_batched_tokens = 8});
  std::vector<int32_t> ids;
  for (int i = 0; i < 21; ++i) ids.push_back(5 + 17 * i % 400);
  std::vector<double> sum;
  for (size_t len = 1; len <= ids.size(); ++len) {
    const std::vector<float> state = pooled(
        *engine,
        pooling_request({ids.begin(), ids.begin() + static_cast<long>(len)}, Pooling::kLast));
    sum.resize(state.size());
    for (size_t j = 0; j < state.size(); ++j) sum[j] += state[j];
    if (len == 1) {
      EXPECT_EQ(pooled(*engine, pooling_request(ids, Pooling::kCls)), state);
    }
  }
  const std::vector<float> mean = pooled(*engine, pooling_request(ids, Pooling::kMean));
  ASSERT_EQ(mean.size(), sum.size());
  for (size_t j = 0; j < sum.size(); ++j) EXPECT_NEAR(mean[j], sum[j] / 21, 1e-5);
}

TEST(Pooling, NormalizedStatesHaveLengthOne) {
  const auto engine = pooling_engine({});
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean, Pooling::kCls}) {
    const std::vector<float> raw = pooled(*engine, pooling_request({5, 6, 7, 8}, pooling));
    const std::vector<float> unit = pooled(*engine, pooling_request({5, 6, 7, 8}, pooling, true));
    double length = 0;
    double raw_length = 0;
    for (const float x : unit) length += double{x} * x;
    for (const float x : raw) raw_length += double{x} * x;
    EXPECT_NEAR(length, 1, 1e-6);
    for (size_t j = 0; j < raw.size(); ++j) {
      EXPECT_NEAR(unit[j], raw[j] / std::sqrt(raw_length), 1e-6);
    }
  }
}

TEST(Pooling, WorksBesideGenerationAndFillsTheModel) {
  const auto engine = pooling_engine({.num_draft_tokens = 3,
                                      .steps_in_flight = 2,
                                      .max_batched_tokens = 16,
                                      .prefix_caching = true});
  const int longest = engine->info().max_model_len;
  std::vector<int32_t> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(7 + 11 * i % 300);
  Request text;
  text.prompt_token_ids = ids;
  text.sampling.max_tokens = 20;
  text.sampling.temperature = 0;
  text.sampling.ignore_eos = true;
  const auto expected_ids = engine->generate({text})[0].token_ids;
  const std::vector<float> alone = pooled(*engine, pooling_request(ids, Pooling::kMean));
  const auto outputs = engine->generate(
      {text, pooling_request(ids, Pooling::kMean), text, pooling_request(ids, Pooling::kMean)});
  for (const size_t i : {0, 2}) EXPECT_EQ(outputs[i].token_ids, expected_ids);
  for (const size_t i : {1, 3}) {
    EXPECT_EQ(outputs[i].embedding, alone);
    EXPECT_EQ(outputs[i].stats.num_cached_tokens, 0);
    EXPECT_EQ(outputs[i].stats.num_output_tokens, 0);
  }
  const std::vector<int32_t> whole(static_cast<size_t>(longest), 9);
  EXPECT_FALSE(pooled(*engine, pooling_request(whole, Pooling::kLast)).empty());
  expect_all_free(*engine);
}

}  // namespace
}  // namespace foretoken
