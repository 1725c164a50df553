#include "engine/start_barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace foretoken {
namespace {

TEST(StartBarrier, NobodyGoesOnBeforeAllAreThere) {
  constexpr int kEngines = 4;
  std::latch engines(kEngines);
  std::atomic<int> arrived = 0;
  std::atomic<int> went_early = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kEngines; ++i) {
    threads.emplace_back([&] {
      StartBarrier barrier(engines, false);
      ++arrived;
      barrier.wait_for_others();
      if (arrived.load() != kEngines) ++went_early;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(went_early, 0);
}

TEST(StartBarrier, OneThatGivesUpKeepsNobodyWaiting) {
  std::latch engines(3);
  {
    const StartBarrier failed(engines, true);
  }
  std::thread other([&] {
    StartBarrier barrier(engines, false);
    barrier.wait_for_others();
  });
  EXPECT_FALSE(engines.try_wait());
  {
    const StartBarrier measures_nothing(engines, false);
  }
  other.join();
  EXPECT_TRUE(engines.try_wait());
}

}  // namespace
}  // namespace foretoken
