#include "engine/step/rest_gate.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace foretoken {
namespace {

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
  EXPECT_TRUE(gate.enter(true, [&] { wanted.set_value(); }));
  EXPECT_TRUE(gate.is_resting());
  EXPECT_TRUE(gate.enter(false, [] {}));
  gate.leave();
  left.set_value();
  engine.join();
  EXPECT_FALSE(gate.is_wanted());
}

// Whoever wants rest again waits for one that begins behind it, even if the thread has not looked.
TEST(RestGate, ALeftRestIsNoneForTheNextOne) {
  RestGate gate;
  EXPECT_TRUE(gate.enter(true, [&] { gate.begin_rest(); }));
  gate.leave();
  EXPECT_TRUE(gate.enter(false, [&] {
    EXPECT_FALSE(gate.is_resting());
    EXPECT_FALSE(gate.ends_requests());
    gate.begin_rest();
  }));
  EXPECT_TRUE(gate.is_resting());
}

TEST(RestGate, NobodyRestsOnceItHasStopped) {
  RestGate gate;
  gate.stop();
  EXPECT_FALSE(gate.enter(true, [] {}));
  EXPECT_FALSE(gate.is_resting());
  gate.begin_rest();
  EXPECT_FALSE(gate.is_resting());
}

TEST(RestGate, AStopEndsARest) {
  RestGate gate;
  EXPECT_TRUE(gate.enter(true, [&] { gate.begin_rest(); }));
  gate.stop();
  EXPECT_FALSE(gate.is_resting());
}

}  // namespace
}  // namespace foretoken
