#include "spec/draft_trials.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// A trial of four steps that lose 3 ms each waits until a two hundredth of the time pays for it.
TEST(DraftTrials, TheyCostATwoHundredthOfTheTime) {
  DraftTrials trials;
  constexpr int64_t kPlain = 2'000'000, kWith = 5'000'000;
  int num_trials = 0, num_steps = 0;
  int64_t lost = 0;
  for (int step = 0; step < 24'000; ++step) {
    trials.begin(0, 3, kWith - kPlain, kPlain);
    const int limit = trials.limit_of(0);
    const bool is_trial = trials.planned();
    EXPECT_EQ(limit, is_trial ? 3 : 0);
    trials.step_ended(is_trial, is_trial ? kWith : kPlain, kPlain);
    if (is_trial && num_steps++ % 4 == 0) ++num_trials;
    if (is_trial) lost += kWith - kPlain;
  }
  EXPECT_EQ(num_steps, num_trials * 4);
  EXPECT_GE(num_trials, 20);
  EXPECT_LE(lost, 24'000 * kPlain / 200 + 16 * kPlain + 12'000'000);
}

}  // namespace
}  // namespace foretoken
