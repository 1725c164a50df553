#include "spec/guessed_costs.h"

#include <gtest/gtest.h>

#include "spec/length_controller.h"
#include "spec/policy_tables.h"
#include "spec/policy_world.h"
#include "spec/touched_experts.h"
#include "support/time_curve.h"

namespace foretoken {
namespace {

CostTable guess(int64_t bytes_per_second = 1'000'000'000) {
  return guessed_cost_table(
      {.weight_bytes = 2'000'000,
       .bytes_per_second = bytes_per_second,
       .drafters = {{"eagle", true, false, 500'000}, {"ngram", false, true, 0}}});
}

TEST(GuessedTimes, RowsCostAsMuchAsTheFirst) {
  const CostTable times = guess();
  EXPECT_EQ(times.target.at(1), 2'000'000);
  EXPECT_EQ(times.target.at(10), 20'000'000);
  EXPECT_EQ(times.step_ns(4, 12, 12), 32'000'000);
  EXPECT_TRUE(times.drafters[0].covers(true, false, 5));
  EXPECT_TRUE(times.drafters[1].covers(false, true, 5));
  EXPECT_GT(guess(1'000'000'000'000).target.at(1), 0) << "a fast device";
  EXPECT_GT(guess(1).target.at(1 << 20), 0) << "a slow one overflows nothing";
}

// Rows of a mixture read the experts that they touch: 6, 11.4, 20.8, ... of 64.
TEST(GuessedTimes, ExpertsCostWhatRowsTouchOfThem) {
  const CostTable times = guessed_cost_table({.weight_bytes = 16'500'000'000,
                                              .bytes_per_second = 1'000'000'000'000,
                                              .experts = {14'500'000'000, 64, 6},
                                              .drafters = {}});
  const double own = 2'000'000, all = 14'500'000;
  for (const int rows : {1, 2, 4, 16, 64, 256}) {
    EXPECT_NEAR(static_cast<double>(times.target.at(rows)),
                own * rows + all * touched_share(64, 6, rows), 100)
        << rows;
  }
  for (const int rows : {3, 6, 11, 24, 50, 100}) {
    const double expected = own * rows + all * touched_share(64, 6, rows);
    EXPECT_NEAR(static_cast<double>(times.target.at(rows)), expected, expected / 100) << rows;
  }
}

// Even drafts that are all accepted: what is not known to pay is only probed.
TEST(GuessedTimes, NothingIsDraftedByThem) {
  CostTable times = guess();
  times.drafters.resize(1);
  LengthController policy(policy_config(LengthMode::kAdaptive, 4), times);
  BatchDemand demand;
  demand.num_sequences = demand.num_decoding = 1;
  demand.drafters[0].num_decoding = demand.drafters[0].num_ready = 1;
  int drafted = 0;
  for (uint64_t step = 0; step < 1000; ++step) {
    const int limit = policy.decide(step, demand)[0].num_draft_tokens;
    policy.planned(step, {1, 1 + limit, 0, {DraftUse{limit, limit + 1, limit > 0 ? 1 : 0}}});
    if (limit > 0) policy.observe(step, 0, limit, limit, limit);
    drafted += limit;
  }
  EXPECT_LE(drafted, 1000 / 64 + 1);
}

TEST(CompletedTimes, WhatWasNotMeasuredGoesAsTheGuess) {
  const CostTable shape = guessed_cost_table(
      {.weight_bytes = 100'000'000,
       .bytes_per_second = 1'000'000'000,
       .rows_per_step = 4,
       .drafters = {{"eagle", true, false, 10'000'000}, {"ngram", false, true, 0}}});
  EXPECT_EQ(shape.target.at(2), 125'000'000);
  CostTable times;
  times.target = test::curve({{1, 60'000'000}});
  times.drafters = {{"eagle", false, {}, test::curve({{1, 8'000'000}})}, {"ngram", true, {}, {}}};
  complete_costs(times, shape);
  EXPECT_TRUE(times.is_guess) << "one time tells no slope";
  EXPECT_EQ(times.target.at(1), 60'000'000);
  EXPECT_EQ(times.target.at(2), 75'000'000);
  EXPECT_EQ(times.drafters[0].catch_up.at(1), 6'000'000);
  EXPECT_EQ(times.drafters[0].pass.at(1), 8'000'000) << "through its own point";
  EXPECT_EQ(times.drafters[0].pass.at(5), 16'000'000);
  EXPECT_TRUE(times.drafters[0].covers(true, false, 4));
  EXPECT_TRUE(times.drafters[1].covers(false, true, 4));

  CostTable measured = times;
  measured.target = test::curve({{1, 60'000'000}, {4, 66'000'000}});
  const CostTable before = measured;
  complete_costs(measured, shape);
  EXPECT_FALSE(measured.is_guess);
  EXPECT_EQ(measured.target, before.target);

  CostTable none;
  none.drafters = {{"eagle", false, {}, {}}, {"ngram", true, {}, {}}};
  complete_costs(none, shape);
  EXPECT_TRUE(none.is_guess);
  EXPECT_EQ(none.target, shape.target);
  EXPECT_EQ(none.drafters[0].catch_up, shape.drafters[0].catch_up);
}

// Steps of a model that was too large to measure: the first ones teach what the others take.
class LearnedFromSteps : public testing::TestWithParam<int> {
 protected:
  // By a guess that says so many percent of the time of one row.
  static double speed(LengthMode mode, double acceptance, int percent) {
    static const CostTable truth = cpu_times();
    const int64_t bytes = truth.target.at(1) * percent / 100;
    CostTable times;
    times.drafters = {{"eagle3", false, {}, {}}};
    complete_costs(times, guessed_cost_table({.weight_bytes = bytes,
                                              .bytes_per_second = 1'000'000'000,
                                              .rows_per_step = 4,
                                              .drafters = {{"eagle3", true, false, bytes / 12}}}));
    LengthControllerConfig config = policy_config(mode, 3);
    config.follows_device = true;
    const int batch = GetParam();
    const auto really = [](int seqs, int drafts, int64_t) {
      const int each = (drafts + seqs - 1) / seqs;
      return truth.step_ns(seqs, drafts, drafts) +
             (drafts > 0 ? truth.draft_ns(0, {each, seqs * (each + 1), seqs}) : 0);
    };
    PolicyWorld world(times, config,
                      {.batch = batch,
                       .num_requests = batch * 2,
                       .prompt_len = 64,
                       .output_len = 300,
                       .acceptance = [=](int, int) { return acceptance; },
                       .really = really});
    return world.run().tokens_per_second();
  }
};

TEST_P(LearnedFromSteps, DraftsThatPayAreMadeAndOthersCostLittle) {
  for (const int percent : {25, 100, 400}) {
    for (const double acceptance : {0.02, 0.4, 0.9}) {
      const double off = speed(LengthMode::kOff, acceptance, percent);
      const double fixed = speed(LengthMode::kFixed, acceptance, percent);
      const double adaptive = speed(LengthMode::kAdaptive, acceptance, percent);
      EXPECT_GE(adaptive, 0.96 * off) << percent << " % of the time, " << acceptance;
      if (fixed > 1.2 * off) {
        EXPECT_GT(adaptive, 1.02 * off) << percent << " % of the time, " << acceptance;
      }
    }
  }
  EXPECT_GT(speed(LengthMode::kFixed, 0.9, 100), 1.1 * speed(LengthMode::kOff, 0.9, 100));
}

INSTANTIATE_TEST_SUITE_P(Batches, LearnedFromSteps, testing::Values(1, 4, 8));

}  // namespace
}  // namespace foretoken
