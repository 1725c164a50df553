#include "base/cpu_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace foretoken {
namespace {

TEST(CpuClock, CountsWorkAndNotSleep) {
  const int64_t begin = thread_cpu_ns();
  while (thread_cpu_ns() - begin < 2'000'000) {
  }
  const int64_t worked = thread_cpu_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(thread_cpu_ns() - worked, 40'000'000);
}

}  // namespace
}  // namespace foretoken
