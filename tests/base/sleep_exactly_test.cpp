#include "base/sleep_exactly.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace foretoken {
namespace {

TEST(SleepExactly, SleepsAndMakesTheThreadSharp) {
  std::thread([] {
    const int64_t begin = now_ns();
    sleep_exactly(200'000);
    EXPECT_GE(now_ns() - begin, 200'000);
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL), 1000);
  }).join();
}

}  // namespace
}  // namespace foretoken
