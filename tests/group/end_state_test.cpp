#include "group/end_state.h"

#include <gtest/gtest.h>

#include "group/wire/socket.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;

TEST(EndState, TheFirstReasonStays) {
  EndState state;
  EXPECT_FALSE(state.ended());
  EXPECT_TRUE(state.why().ok());
  EXPECT_EQ(wait_for(state.descriptor(), 1, -1, Clock::now()), Waited::kLate);
  state.end(aborted("first"));
  state.end(aborted("second"));
  EXPECT_TRUE(state.ended());
  EXPECT_EQ(state.why().message(), "first");
  EXPECT_EQ(wait_for(state.descriptor(), 1, -1, Clock::now() + 1h), Waited::kReady);
}

TEST(EndState, ItsListenerHearsOnce) {
  EndState state;
  int heard = 0;
  state.on_end([&](const Status&) { ++heard; });
  state.end(aborted("first"));
  state.end(aborted("second"));
  EXPECT_EQ(heard, 1);
  state.on_end([&](const Status& why) { heard += why.message() == "first" ? 10 : 100; });
  EXPECT_EQ(heard, 11);
}

}  // namespace
}  // namespace foretoken::group
