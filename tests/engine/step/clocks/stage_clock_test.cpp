#include "engine/step/clocks/stage_clock.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(StageClock, AddsUpWorkAndShortGaps) {
  StageClock clock;
  clock.note_step({1'000'000'000, 1'300'000'000, 0});
  clock.note_step({1'400'000'000, 1'500'000'000, 0});
  // The engine had rested.
  clock.note_step({9'000'000'000, 9'100'000'000, 0});
  EXPECT_EQ(clock.num_steps(), 3);
  EXPECT_EQ(clock.idle_ns(), 100'000'000);
  EXPECT_EQ(clock.text(), "3 steps, busy 0.50 s, idle 0.10 s (16.7 %)");
}

}  // namespace
}  // namespace foretoken
