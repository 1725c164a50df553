#include "spec/branch_policy.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// A row takes 10 us, and a step 1 ms besides.
TimeCurve rows_of_ten_us(int64_t base_ns = 1'000'000, int64_t row_ns = 10'000) {
  TimeCurve curve;
  for (const int rows : {1, 1000}) curve.add(rows, base_ns + rows * row_ns);
  return curve;
}

// One sequence with four drafts. Every `every` steps a branch wins `tokens`.
struct World {
  TimeCurve curve = rows_of_ten_us();
  int winner = 0;
  int every = 1;
  int tokens = 1;
  int num_sequences = 1;

  // How many steps of the last hundred of `steps` have `count` branches.
  int steps_with(BranchPolicy& policy, int count, int steps = 2000) const {
    int found = 0;
    for (int step = 0; step < steps; ++step) {
      const int branches = policy.decide(
          static_cast<uint64_t>(step),
          {.num_rows = 5 * num_sequences, .rows_each = 5, .draft_ns = 200'000}, curve);
      if (step >= steps - 100) found += branches == count ? 1 : 0;
      if (branches == 0) continue;
      const bool wins = branches > winner && step % every == 0;
      for (int i = 0; i < num_sequences; ++i) {
        policy.observe(static_cast<uint64_t>(step), 3 + (wins ? tokens : 0), wins ? winner : -1,
                       wins ? tokens : 0);
      }
    }
    return found;
  }
};

TEST(BranchPolicy, HasAllWithoutCostsAndNoneWithoutBranches) {
  BranchPolicy none(0, 2);
  BranchPolicy all(7, 2);
  for (uint64_t step = 0; step < 50; ++step) {
    EXPECT_EQ(none.decide(step, {.num_rows = 5, .rows_each = 5}, rows_of_ten_us()), 0);
    EXPECT_EQ(all.decide(step, {.num_rows = 5, .rows_each = 5}, {}), 7);
  }
  EXPECT_EQ(all.decide(51, {.num_rows = 0, .rows_each = 5}, {}), 0);
}

// Eight branches take 0.4 ms of 1.65 with them: a third more tokens pay for them, a tenth does not.
TEST(BranchPolicy, TakesThemWhereTheyPay) {
  BranchPolicy gains(8, 2);
  EXPECT_EQ((World{.winner = 7, .every = 2, .tokens = 3}).steps_with(gains, 8), 100);
  BranchPolicy loses(8, 2);
  EXPECT_GE((World{.winner = 7, .every = 20, .tokens = 3}).steps_with(loses, 0), 96);
}

// The first of eight brings everything: two of them, a quarter, are enough.
TEST(BranchPolicy, TakesAsManyAsPay) {
  BranchPolicy policy(8, 2);
  EXPECT_GE((World{.winner = 0, .every = 2, .tokens = 2}).steps_with(policy, 2), 96);
}

// Where rows are dear from the start none is ever tried.
TEST(BranchPolicy, DoesNotExploreWhereStepsWouldTakeFarLonger) {
  BranchPolicy policy(8, 2);
  const World dear{.curve = rows_of_ten_us(100'000, 100'000), .winner = 7, .every = 1};
  EXPECT_EQ(dear.steps_with(policy, 0, 100), 100);
}

// What did not pay is tried again, so that a text which changes is noticed.
TEST(BranchPolicy, TriesAgain) {
  BranchPolicy policy(8, 2);
  EXPECT_GE((World{.winner = 7, .every = 1000, .tokens = 1}).steps_with(policy, 0), 96);
  World better{.winner = 3, .every = 1, .tokens = 3};
  int most = 0;
  for (uint64_t step = 2000; step < 12000; ++step) {
    const int branches =
        policy.decide(step, {.num_rows = 5, .rows_each = 5, .draft_ns = 200'000}, better.curve);
    if (step >= 11900) most += branches > 0 ? 1 : 0;
    if (branches == 0) continue;
    const bool wins = branches > better.winner;
    policy.observe(step, wins ? 6 : 3, wins ? better.winner : -1, wins ? 3 : 0);
  }
  EXPECT_EQ(most, 100);
}

// Results count two steps later, whatever is known by then.
TEST(BranchPolicy, DecidesAlikeWithOneAndTwoStepsInFlight) {
  BranchPolicy at_once(8, 2), later(8, 2);
  const BranchPolicy::Load load{.num_rows = 5, .rows_each = 5, .draft_ns = 200'000};
  const TimeCurve curve = rows_of_ten_us();
  const auto observe = [](BranchPolicy& policy, uint64_t step) {
    policy.observe(step, step % 3 == 0 ? 5 : 3, step % 3 == 0 ? 1 : -1, step % 3 == 0 ? 2 : 0);
  };
  for (uint64_t step = 0; step < 600; ++step) {
    ASSERT_EQ(at_once.decide(step, load, curve), later.decide(step, load, curve)) << step;
    observe(at_once, step);
    if (step > 0) observe(later, step - 1);
  }
}

}  // namespace
}  // namespace foretoken
