#include "engine/step/clocks/step_clock.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(StepClock, SumsStepsAndGaps) {
  StepStamps stamps[kStepRingSize] = {};
  StepClock clock;
  // Steps of 100 with 30 of drafts, 10 apart, but 5000 before step 3, which had to be waited for.
  int64_t now = 1000;
  for (uint64_t step = 0; step < 6; ++step) {
    now += step == 3 ? 5000 : 10;
    stamps[step % kStepRingSize] = {now, now + 70, now + 100};
    now += 100;
    clock.note_step(step, step != 3, stamps);
  }
  const StepTiming timing = clock.timing();
  EXPECT_EQ(timing.num_steps, 5);
  EXPECT_EQ(timing.device_ns, 500);
  EXPECT_EQ(timing.draft_ns, 150);
  EXPECT_EQ(timing.num_gaps, 4);
  EXPECT_EQ(timing.idle_ns, 40);
}

TEST(StepClock, QuantilesOfGaps) {
  StepStamps stamps[kStepRingSize] = {};
  StepClock clock;
  int64_t now = 0;
  for (uint64_t step = 0; step <= 1000; ++step) {
    now += step % 50 == 0 ? 80'000 : 3'000;
    stamps[step % kStepRingSize] = {now, now, now};
    clock.note_step(step, step > 0, stamps);
  }
  const StepTiming timing = clock.timing();
  EXPECT_EQ(timing.num_gaps, 1000);
  EXPECT_NEAR(static_cast<double>(timing.idle_median_ns), 3'000, 300);
  EXPECT_NEAR(static_cast<double>(timing.idle_p99_ns), 80'000, 8'000);
}

TEST(StepClock, CountsTokensOfSteps) {
  StepClock clock;
  for (const int num_tokens : {0, 1, 2, 8, 9, 16384, 16385}) clock.note_tokens(num_tokens);
  const StepTokens tokens = clock.step_tokens();
  EXPECT_EQ(tokens.num_steps[0], 2);
  EXPECT_EQ(tokens.num_steps[1], 2);
  EXPECT_EQ(tokens.num_steps[2], 1);
  EXPECT_EQ(tokens.num_steps[12], 1);
  EXPECT_EQ(tokens.num_steps[13], 1);
  EXPECT_EQ(tokens.sum, 1 + 2 + 8 + 9 + 16384 + 16385);
}

// Clocks of some devices go in steps of a microsecond, and no gap is negative.
TEST(StepClock, NoGap) {
  const StepStamps stamps[kStepRingSize] = {{100, 200, 300}, {299, 400, 500}, {}, {}};
  StepClock clock;
  clock.note_step(1, true, stamps);
  EXPECT_EQ(clock.timing().idle_ns, 0);
  EXPECT_EQ(clock.timing().idle_median_ns, 0);
}

TEST(StepClock, SumsPhases) {
  StepClock clock;
  clock.count_planned();
  clock.note_phase(HostPhase::kPlan, 5);
  clock.note_phase(HostPhase::kPlan, 6);
  clock.note_phase(HostPhase::kWait, 7);
  const StepTiming timing = clock.timing();
  EXPECT_EQ(timing.num_planned, 1);
  EXPECT_EQ(timing.plan_ns, 11);
  EXPECT_EQ(timing.wait_ns, 7);
  EXPECT_EQ(timing.submit_ns, 0);
}

}  // namespace
}  // namespace foretoken
