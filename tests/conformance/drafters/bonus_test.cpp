#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "conformance/drafter_cases.h"
#include "engine/engine_impl.h"

// The bonus token is kept: with synthetic rates p, p^2, ..., p^K a step emits 1 + p + ... + p^K
// tokens; without the bonus p^K fewer, which the numbers must tell apart.

namespace foretoken {
namespace {

constexpr double kRate = 0.8;

class Bonus : public ::testing::TestWithParam<int> {};

EngineConfig synthetic_config(int num_draft_tokens) {
  EngineConfig config = config_of({.steps_in_flight = 2}, bundled_folder("foretoken-7m-draft"));
  config.max_num_seqs = 1;
  config.max_model_len = 2048;
  SpeculativeConfig drafter;
  drafter.method = "draft_model";
  drafter.model = bundled_folder("foretoken-7m-draft");
  drafter.num_speculative_tokens = num_draft_tokens;
  drafter.length_policy = "fixed";
  drafter.rejection_sample_method = "synthetic";
  for (int i = 1; i <= num_draft_tokens; ++i) {
    drafter.synthetic_acceptance_rates.push_back(std::pow(kRate, i));
  }
  config.speculative = {drafter};
  return config;
}

TEST_P(Bonus, TokensOfAStep) {
  const int num_draft_tokens = GetParam();
  const bool all = num_test_prompts(200) == 200;
  // Sanitizer builds only look at the way.
  const int64_t wanted_steps = all ? 40000 : 250;
  const int num_tokens = all ? 2000 : 300;
  auto engine = EngineImpl::create(synthetic_config(num_draft_tokens), TestHooks{});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  RequestStats sum;
  for (uint64_t seed = 0; sum.num_drafts < wanted_steps; ++seed) {
    Request request;
    request.prompt_token_ids = {20, 21, 22};
    request.sampling.max_tokens = num_tokens;
    request.sampling.ignore_eos = true;
    request.sampling.seed = seed;
    const RequestOutput output = std::move(engine.value()->generate({request})[0]);
    ASSERT_TRUE(output.status.ok()) << output.status.message();
    EXPECT_EQ(output.finish_reason, FinishReason::kLength);
    EXPECT_EQ(output.token_ids.size(), static_cast<size_t>(num_tokens));
    sum += output.stats;
  }
  double expected = 1;
  for (int i = 1; i <= num_draft_tokens; ++i) expected += std::pow(kRate, i);
  const double without_bonus = expected - std::pow(kRate, num_draft_tokens);
  // The first step of a request has no drafts, and emits one token.
  const double steps = static_cast<double>(sum.num_drafts);
  const double emitted =
      static_cast<double>(sum.num_output_tokens - (sum.num_steps - sum.num_drafts));
  std::cout << "device=" << test_device_name() << " K=" << num_draft_tokens << ": "
            << emitted / steps << " tokens a step, expected " << expected << ", " << sum.num_drafts
            << " steps\n";
  EXPECT_NEAR(emitted / steps, expected, expected * (all ? 0.01 : 0.12));
  if (all) {
    EXPECT_GT(emitted / steps - without_bonus, 3 * std::abs(emitted / steps - expected));
  }
  for (int i = 0; i < num_draft_tokens; ++i) {
    const auto at = static_cast<size_t>(i);
    const double rate = static_cast<double>(sum.num_accepted_tokens_per_pos[at]) / steps;
    EXPECT_NEAR(rate, std::pow(kRate, i + 1), all ? 0.01 : 0.15) << "position " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Bonus, ::testing::Values(1, 3, 5),
                         [](const auto& param) { return "K" + std::to_string(param.param); });

}  // namespace
}  // namespace foretoken
