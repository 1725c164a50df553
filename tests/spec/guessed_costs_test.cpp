#include "spec/guessed_costs.h"

#include <gtest/gtest.h>

#include "spec/length_controller.h"
#include "spec/policy_tables.h"
#include "spec/touched_experts.h"

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

}  // namespace
}  // namespace foretoken
