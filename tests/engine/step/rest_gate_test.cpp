#include "engine/step/rest_gate.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace foretoken {
namespace {

using Entered = RestGate::Entered;

TEST(RestGate, TheThreadRestsUntilItMayGoOn) {
  RestGate gate;
  std::promise<void> wanted, left;
  std::thread engine([&] {
    wanted.get_future().wait();
    EXPECT_TRUE(gate.is_wanted());
    EXPECT_TRUE(gate.ends_requests());
    gate.begin_rest();
    left.get_future().wait();
    EXPECT_FALSE(gate.is_resting());
  });
  EXPECT_FALSE(gate.is_resting());
  EXPECT_EQ(gate.enter(true, {}, [&] { wanted.set_value(); }), Entered::kRests);
  EXPECT_TRUE(gate.is_resting());
  EXPECT_EQ(gate.enter(false, {}, [] {}), Entered::kRests);
  gate.leave();
  left.set_value();
  engine.join();
  EXPECT_FALSE(gate.is_wanted());
}

// Whoever wants rest again waits for one that begins behind it, even if the thread has not looked.
TEST(RestGate, ALeftRestIsNoneForTheNextOne) {
  RestGate gate;
  EXPECT_EQ(gate.enter(true, {}, [&] { gate.begin_rest(); }), Entered::kRests);
  gate.leave();
  EXPECT_EQ(gate.enter(false, {},
                       [&] {
                         EXPECT_FALSE(gate.is_resting());
                         EXPECT_FALSE(gate.ends_requests());
                         gate.begin_rest();
                       }),
            Entered::kRests);
  EXPECT_TRUE(gate.is_resting());
}

TEST(RestGate, NobodyRestsOnceItHasStopped) {
  RestGate gate;
  gate.stop();
  EXPECT_EQ(gate.enter(true, {}, [] {}), Entered::kEnded);
  EXPECT_FALSE(gate.is_resting());
  gate.begin_rest();
  EXPECT_FALSE(gate.is_resting());
}

TEST(RestGate, AStopEndsARest) {
  RestGate gate;
  EXPECT_EQ(gate.enter(true, {}, [&] { gate.begin_rest(); }), Entered::kRests);
  gate.stop();
  EXPECT_FALSE(gate.is_resting());
}

TEST(RestGate, WhoWaitsIsRecalledOrHearsThatItGoesOn) {
  RestGate gate;
  std::stop_source recall;
  int num_looks = 0;
  EXPECT_EQ(gate.enter(false, recall.get_token(),
                       [&] {
                         ++num_looks;
                         recall.request_stop();
                       }),
            Entered::kLeft);
  EXPECT_EQ(num_looks, 2);
  EXPECT_FALSE(gate.is_wanted());
  EXPECT_EQ(gate.enter(false, {}, [&] { gate.leave(); }), Entered::kLeft);
  EXPECT_FALSE(gate.is_wanted());
  gate.begin_rest();
  EXPECT_FALSE(gate.is_resting());
}

// One of two goes: the other still waits, and one that ends requests does so for both.
TEST(RestGate, OneOfTwoThatWait) {
  RestGate gate;
  std::stop_source recall;
  std::promise<void> waits;
  std::thread other(
      [&] { EXPECT_EQ(gate.enter(false, {}, [&] { waits.set_value(); }), Entered::kRests); });
  waits.get_future().wait();
  EXPECT_FALSE(gate.ends_requests());
  EXPECT_EQ(gate.enter(true, recall.get_token(), [&] { recall.request_stop(); }), Entered::kLeft);
  EXPECT_TRUE(gate.is_wanted());
  EXPECT_TRUE(gate.ends_requests());
  gate.begin_rest();
  other.join();
}

}  // namespace
}  // namespace foretoken
