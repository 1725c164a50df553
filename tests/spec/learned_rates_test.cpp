#include "spec/learned_rates.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "spec/length_controller.h"
#include "spec/policy_tables.h"

namespace foretoken {
namespace {

// Lengths that are granted to one sequence while `accepted` of its drafts are, at most.
std::vector<int> lengths(LengthController& policy, uint64_t first, int num_steps, int accepted) {
  std::vector<int> granted;
  BatchDemand demand;
  demand.num_sequences = demand.num_decoding = 1;
  demand.drafters[0].num_decoding = demand.drafters[0].num_ready = 1;
  for (uint64_t step = first; step < first + static_cast<uint64_t>(num_steps); ++step) {
    const int limit = policy.decide(step, demand)[0].num_draft_tokens;
    policy.planned(
        step, {1, 1 + limit, 0, {DraftUse{limit, limit > 0 ? limit + 1 : 0, limit > 0 ? 1 : 0}}});
    if (limit > 0) policy.observe(step, 0, limit, limit, std::min(accepted, limit));
    granted.push_back(limit);
  }
  return granted;
}

// Of one that has seen 400 steps.
LengthControllerConfig config_after(const CostTable& times, int accepted) {
  LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 5);
  LengthController policy(config, times);
  (void)lengths(policy, 0, 400, accepted);
  config.drafters[0].learned = policy.learned(0, LengthController::Kind::kOwn);
  config.drafters[0].learned_in_lists = policy.learned(0, LengthController::Kind::kListed);
  return config;
}

TEST(LearnedRates, AGoodDrafterStartsAtItsLength) {
  const CostTable times = cpu_times();
  for (const int accepted : {2, 5}) {
    const LengthControllerConfig config = config_after(times, accepted);
    const int length = config.drafters[0].learned.num_draft_tokens;
    LengthController policy(config, times);
    EXPECT_GT(length, 0) << accepted;
    EXPECT_EQ(lengths(policy, 0, 1, accepted), std::vector<int>{length}) << accepted;
  }
}

TEST(LearnedRates, ABadDrafterStartsAtRestAndIsProbed) {
  const CostTable times = cpu_times();
  const LengthControllerConfig config = config_after(times, 0);
  LengthController policy(config, times);
  LengthController unlearned(policy_config(LengthMode::kAdaptive, 5), times);
  const auto sum = [](const std::vector<int>& values) {
    return std::accumulate(values.begin(), values.end(), 0);
  };
  EXPECT_LE(sum(lengths(policy, 0, 64, 0)), 1);
  EXPECT_GT(sum(lengths(unlearned, 0, 64, 0)), 4) << "there was something to learn";
  EXPECT_GT(sum(lengths(policy, 64, 800, 5)), 64) << "it fits again";
}

TEST(LearnedRates, TheyStayWhereTimesChange) {
  const CostTable times = cpu_times();
  LengthController policy(config_after(times, 0), times);
  (void)lengths(policy, 0, 800, 5);
  const auto expected = [&policy] {
    return policy.learned(0, LengthController::Kind::kOwn).rates.expected_drafts(1);
  };
  EXPECT_GT(expected(), BatchRates::kOne / 2);
  policy.times_changed();
  EXPECT_GT(expected(), BatchRates::kOne / 2);
}

}  // namespace
}  // namespace foretoken
