#include "engine/step/plan_timer.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kBegin = 100 * kMs;

StepShape of_rows(int rows) {
  StepShape shape;
  shape.max_rows = rows;
  return shape;
}

// Steps of 16 rows that took so long each.
PlanTimer after(std::initializer_list<int64_t> times) {
  PlanTimer timer;
  timer.note_arrival(kBegin - kMs);
  for (const int64_t ns : times) timer.observe(of_rows(16), false, ns);
  return timer;
}

int64_t wait_of(const PlanTimer& timer, int rows = 16, bool has_prompts = false) {
  return timer.plan_at(of_rows(rows), has_prompts, kBegin) - kBegin;
}

TEST(PlanTimer, WaitsUntilShortlyBeforeTheEnd) {
  EXPECT_EQ(wait_of(after({8 * kMs, 8 * kMs, 8 * kMs, 8 * kMs})), 8 * kMs - kMs / 2 - kMs);
}

TEST(PlanTimer, TheShortestOfTheLastFourCounts) {
  EXPECT_EQ(wait_of(after({8 * kMs, 8 * kMs, 4 * kMs, 8 * kMs})), 4 * kMs - kMs / 4 - kMs);
  EXPECT_EQ(wait_of(after({4 * kMs, 8 * kMs, 8 * kMs, 8 * kMs, 8 * kMs})), 8 * kMs - kMs / 2 - kMs);
  EXPECT_EQ(wait_of(after({kMs / 2, kMs / 2, kMs / 2, kMs / 2})), 0);
}

TEST(PlanTimer, WaitsForNothingThatItDoesNotKnow) {
  EXPECT_EQ(wait_of(PlanTimer()), 0);
  const PlanTimer timer = after({8 * kMs, 8 * kMs, 8 * kMs, 8 * kMs});
  EXPECT_EQ(wait_of(timer, 16, true), 0);
  EXPECT_EQ(wait_of(timer, 64), 0);
  EXPECT_EQ(wait_of(timer, 24), 0);
  EXPECT_EQ(wait_of(after({8 * kMs, 8 * kMs, 8 * kMs})), 0);
}

TEST(PlanTimer, WaitsOnlyWhereRequestsCome) {
  PlanTimer timer = after({8 * kMs, 8 * kMs, 8 * kMs, 8 * kMs});
  timer.note_arrival(kBegin - 1001 * kMs);
  EXPECT_EQ(wait_of(timer), 0);
  timer.note_arrival(kBegin - 999 * kMs);
  EXPECT_GT(wait_of(timer), 0);
}

// What the host needs is learnt fast where the device had to wait for it, and slowly otherwise.
TEST(PlanTimer, LearnsHowEarlyToPlan) {
  PlanTimer timer = after({40 * kMs, 40 * kMs, 40 * kMs, 40 * kMs});
  const int64_t first = wait_of(timer);
  timer.observe_idle(kMs);
  EXPECT_EQ(wait_of(timer), first - kMs);
  timer.observe_idle(kMs);
  EXPECT_EQ(wait_of(timer), first - 3 * kMs);
  timer.observe_idle(5'000);
  EXPECT_EQ(wait_of(timer), first - 3 * kMs + 4 * kMs / 64);
  for (int i = 0; i < 1000; ++i) timer.observe_idle(5'000);
  EXPECT_EQ(wait_of(timer), first + kMs / 2);
  for (int i = 0; i < 20; ++i) timer.observe_idle(kMs);
  EXPECT_EQ(wait_of(timer), first - 15 * kMs);
}

}  // namespace
}  // namespace foretoken
