#include "engine/measure/start_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace foretoken {
namespace {

using std::chrono::milliseconds;

TEST(StartClock, PhasesFollowOneAnother) {
  const StartClock::Clock::time_point begin{std::chrono::hours(1)};
  StartClock clock(begin);
  EXPECT_EQ(clock.text(), "0.00 s");
  clock.end_phase("weights", begin + milliseconds(900));
  clock.end_phase("nothing", begin + milliseconds(904));
  clock.end_phase("memory", begin + milliseconds(1204));
  ASSERT_EQ(clock.phases().size(), 3u);
  EXPECT_DOUBLE_EQ(clock.phases()[0].seconds, 0.9);
  EXPECT_DOUBLE_EQ(clock.phases()[1].seconds, 0.004);
  EXPECT_DOUBLE_EQ(clock.phases()[2].seconds, 0.3);
  EXPECT_DOUBLE_EQ(clock.seconds(), 1.204);
  EXPECT_EQ(clock.text(), "1.20 s: weights 0.90, memory 0.30");
}

TEST(StartClock, TimePasses) {
  StartClock clock;
  std::this_thread::sleep_for(milliseconds(30));
  clock.end_phase("weights");
  EXPECT_GE(clock.seconds(), 0.03);
}

}  // namespace
}  // namespace foretoken
