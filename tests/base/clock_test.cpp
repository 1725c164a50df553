#include "base/clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace foretoken {
namespace {

TEST(Clock, GoesOnInNanoseconds) {
  const int64_t begin = now_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const int64_t passed = now_ns() - begin;
  EXPECT_GE(passed, 2'000'000);
  EXPECT_LT(passed, 60'000'000'000);
}

}  // namespace
}  // namespace foretoken
