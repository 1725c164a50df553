#include "engine/start_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace foretoken {
namespace {

TEST(StartClock, PhasesFollowOneAnother) {
  StartClock clock;
  EXPECT_EQ(clock.text(), "0.00 s");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  clock.end_phase("weights");
  clock.end_phase("nothing");
  std::this_thread::sleep_for(std::chrono::milliseconds(15));
  clock.end_phase("memory");
  ASSERT_EQ(clock.phases().size(), 3u);
  EXPECT_GE(clock.phases()[0].seconds, 0.03);
  EXPECT_LT(clock.phases()[1].seconds, clock.phases()[2].seconds);
  EXPECT_GE(clock.seconds(), 0.045);
  const std::string text = clock.text();
  EXPECT_NE(text.find(" s: weights 0."), std::string::npos) << text;
  EXPECT_NE(text.find(", memory 0."), std::string::npos) << text;
  EXPECT_EQ(text.find("nothing"), std::string::npos) << text;
}

}  // namespace
}  // namespace foretoken
