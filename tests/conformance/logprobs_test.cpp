#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/harness.h"
#include "model/files/containers/safetensors.h"
#include "support/folders.h"

// Log-probabilities against the logits that transformers computed (tests/golden), in double
// precision, and against their own sum.

namespace foretoken {
namespace {

std::string golden_path(const std::string& file) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/tiny-llama/" + file;
}

std::unique_ptr<Engine> golden_engine(int max_logprobs, int num_draft_tokens) {
  Variant variant{
      .num_draft_tokens = num_draft_tokens, .steps_in_flight = 2, .max_batched_tokens = 24};
  EngineConfig config = config_of(variant, golden_path(""));
  config.max_model_len = 0;
  config.dtype = "float32";
  config.skip_tokenizer_init = true;
  config.max_logprobs = max_logprobs;
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  EXPECT_TRUE(made.ok()) << made.message();
  return engine;
}

std::vector<double> log_softmax(const float* logits, int64_t count) {
  const double max = *std::max_element(logits, logits + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(logits[i] - max);
  std::vector<double> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(logits[i] - max - std::log(sum));
  return result;
}

void expect_logprob_row(const TokenLogprobs& row, const std::vector<double>& expected, int32_t id) {
  EXPECT_EQ(row.token.token_id, id);
  const double own = expected[static_cast<size_t>(id)];
  EXPECT_NEAR(row.token.logprob, own, 1e-4);
  const auto greater = [&](double other) { return other > own + 1e-5; };
  const auto num_greater = std::count_if(expected.begin(), expected.end(), greater);
  EXPECT_GE(row.token.rank, 1 + num_greater);
  for (size_t i = 0; i < row.top.size(); ++i) {
    EXPECT_NEAR(row.top[i].logprob, expected[static_cast<size_t>(row.top[i].token_id)], 1e-4);
    EXPECT_EQ(row.top[i].rank, static_cast<int>(i) + 1);
    EXPECT_LE(row.top[i].logprob, row.top[i > 0 ? i - 1 : 0].logprob);
  }
  const double best = *std::max_element(expected.begin(), expected.end());
  ASSERT_FALSE(row.top.empty());
  EXPECT_NEAR(row.top[0].logprob, best, 1e-4);
}

class GoldenLogprobs : public ::testing::TestWithParam<int> {};

// The reference has logits at some positions of a prompt.
void expect_rows(const nlohmann::json& entry, const TensorView& logits,
                 const RequestOutput& output) {
  const auto ids = entry.at("ids").get<std::vector<int32_t>>();
  const auto positions = entry.at("positions").get<std::vector<size_t>>();
  const int64_t vocab = logits.shape.back();
  std::vector<float> values(static_cast<size_t>(vocab));
  ASSERT_EQ(output.prompt_logprobs.size(), ids.size() - 1);
  ASSERT_EQ(output.logprobs.size(), output.token_ids.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    const size_t row_bytes = values.size() * sizeof(float);
    std::memcpy(values.data(), logits.data + i * row_bytes, row_bytes);
    const bool in_prompt = positions[i] + 1 < ids.size();
    const TokenLogprobs& row =
        in_prompt ? output.prompt_logprobs[positions[i]] : output.logprobs[0];
    ASSERT_EQ(row.top.size(), in_prompt ? 5u : 3u);
    expect_logprob_row(row, log_softmax(values.data(), vocab),
                       in_prompt ? ids[positions[i] + 1] : output.token_ids[0]);
  }
}

TEST_P(GoldenLogprobs, EqualTheReference) {
  std::ifstream file(golden_path("golden.json"));
  const nlohmann::json golden = nlohmann::json::parse(file);
  const auto tensors = SafetensorsFile::open(golden_path("golden.safetensors"));
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  const auto engine = golden_engine(20, GetParam());
  ASSERT_NE(engine, nullptr);
  size_t number = 0;
  for (const nlohmann::json& entry : golden.at("fp32")) {
    Request request;
    request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
    request.sampling.temperature = 0;
    request.sampling.max_tokens = 8;
    request.sampling.ignore_eos = true;
    request.sampling.prompt_logprobs = 5;
    request.sampling.logprobs = 3;
    const RequestOutput output = engine->generate({request})[0];
    ASSERT_TRUE(output.status.ok()) << output.status.message();
    const auto& by_name = tensors.value()->tensors();
    const auto logits = by_name.find("prompt" + std::to_string(number++) + ".logits.fp32");
    if (logits != by_name.end()) expect_rows(entry, logits->second, output);
    // A greedy token is the likeliest.
    for (const TokenLogprobs& row : output.logprobs) {
      EXPECT_EQ(row.token.rank, 1);
      EXPECT_EQ(row.token.token_id, row.top[0].token_id);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Drafts, GoldenLogprobs, ::testing::Values(0, 4));

// -1 asks for the whole vocabulary.
TEST(Logprobs, OfTheWholeVocabularySumToOne) {
  const auto engine = golden_engine(-1, 4);
  ASSERT_NE(engine, nullptr);
  Request request;
  request.prompt_token_ids = {5, 6, 7, 5, 6, 7, 5};
  request.sampling.max_tokens = 6;
  request.sampling.ignore_eos = true;
  request.sampling.logprobs = -1;
  request.sampling.prompt_logprobs = -1;
  // Raw log-probabilities, whatever shapes the choice.
  request.sampling.repetition_penalty = 1.5f;
  request.sampling.logit_bias = {{9, 4.0f}};
  const RequestOutput output = engine->generate({request})[0];
  ASSERT_TRUE(output.status.ok()) << output.status.message();
  std::vector<TokenLogprobs> rows = output.logprobs;
  rows.insert(rows.end(), output.prompt_logprobs.begin(), output.prompt_logprobs.end());
  ASSERT_EQ(rows.size(), 12u);
  for (const TokenLogprobs& row : rows) {
    ASSERT_EQ(row.top.size(), static_cast<size_t>(engine->info().vocab_size));
    double sum = 0;
    for (const Logprob& top : row.top) sum += std::exp(static_cast<double>(top.logprob));
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_EQ(row.top[static_cast<size_t>(row.token.rank) - 1].logprob, row.token.logprob);
  }
}

// Shaped choices keep the model's own log-probabilities.
TEST(Logprobs, AreThoseOfTheModelWhateverShapesTheChoice) {
  const auto engine = golden_engine(8, 0);
  ASSERT_NE(engine, nullptr);
  Request plain;
  plain.prompt_token_ids = {5, 6, 7, 5, 6, 7, 5};
  plain.sampling.max_tokens = 1;
  plain.sampling.temperature = 0;
  plain.sampling.logprobs = 8;
  plain.sampling.ignore_eos = true;
  const RequestOutput before = engine->generate({plain})[0];
  ASSERT_EQ(before.logprobs.size(), 1u);
  Request forced = plain;
  const Logprob third = before.logprobs[0].top[2];
  forced.sampling.allowed_token_ids = {{third.token_id}};
  forced.sampling.temperature = 1.7f;
  const RequestOutput after = engine->generate({forced})[0];
  ASSERT_EQ(after.token_ids, std::vector<int32_t>{third.token_id});
  EXPECT_EQ(after.logprobs[0].token.logprob, third.logprob);
  EXPECT_EQ(after.logprobs[0].token.rank, 3);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(after.logprobs[0].top[i].token_id, before.logprobs[0].top[i].token_id);
    EXPECT_EQ(after.logprobs[0].top[i].logprob, before.logprobs[0].top[i].logprob);
  }
}

}  // namespace
}  // namespace foretoken
