#include "base/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace foretoken {
namespace {

TEST(Clock, GoesOnInNanoseconds) {
  const auto before = std::chrono::steady_clock::now();
  const int64_t begin = now_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const int64_t passed = now_ns() - begin;
  EXPECT_GE(passed, 2'000'000);
  EXPECT_LE(std::chrono::nanoseconds(passed), std::chrono::steady_clock::now() - before);
}

}  // namespace
}  // namespace foretoken
