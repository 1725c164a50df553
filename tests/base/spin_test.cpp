#include "base/spin.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace foretoken {
namespace {

// Even with fewer cores than spinning threads the one that is waited for gets its turn.
TEST(Spin, WaitersLetTheOthersRun) {
  constexpr int kThreads = 8;
  constexpr int kTurns = 50;
  std::atomic<int> turn{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int i = 0; i < kTurns; ++i) {
        for (int spins = 0; turn.load() % kThreads != id; ++spins) spin_pause(spins);
        turn.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turn.load(), kThreads * kTurns);
}

}  // namespace
}  // namespace foretoken
