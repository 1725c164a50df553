#include "device/cpu/cpu_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

#include "support/gate.h"

namespace foretoken::cpu {
namespace {

TEST(CpuPool, RunsEveryIndexOnce) {
  for (const int threads : {1, 2, 5}) {
    CpuPool pool(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    for (const int count : {0, 1, 2, 3, 64, 1000}) {
      std::vector<int> seen(static_cast<size_t>(count), 0);
      pool.parallel_for(count, [&](int64_t index, int worker) {
        ++seen[static_cast<size_t>(index)];
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
      });
      for (const int times : seen) ASSERT_EQ(times, 1);
    }
  }
}

// Results of one job are plain memory read by the next: any stale ticket would show here and
// under ThreadSanitizer.
TEST(CpuPool, ManyJobsInARow) {
  CpuPool pool(4);
  std::vector<int64_t> values(37, 0);
  for (int64_t job = 0; job < 20000; ++job) {
    const int64_t count = 1 + job % 37;
    pool.parallel_for(count, [&](int64_t index, int) { ++values[static_cast<size_t>(index)]; });
  }
  int64_t total = 0;
  for (const int64_t value : values) total += value;
  int64_t want = 0;
  for (int64_t job = 0; job < 20000; ++job) want += 1 + job % 37;
  EXPECT_EQ(total, want);
}

TEST(CpuPool, AWorkerNumberIsExclusive) {
  CpuPool pool(3);
  std::vector<int64_t> mine(3, 0);
  for (int job = 0; job < 500; ++job) {
    pool.parallel_for(16, [&](int64_t, int worker) { ++mine[static_cast<size_t>(worker)]; });
  }
  EXPECT_EQ(mine[0] + mine[1] + mine[2], 500 * 16);
}

TEST(CpuPool, HelpersWakeAfterTheyParked) {
  CpuPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> inside{0};
    std::atomic<bool> met{false};
    const auto deadline = std::chrono::steady_clock::now() + test::kPatience;
    pool.parallel_for(2, [&](int64_t, int) {
      if (++inside == 2) met = true;
      while (!met && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    });
    EXPECT_TRUE(met) << "both threads must take part";
  }
}

// The letter by which the system tells what a thread of this process does: S asleep, R running.
char state_of(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '?' : text[name_end + 2];
}

// A helper whose core somebody else has is waited for asleep: a caller that spins would have the
// core, or the time that a container is allowed, which the helper needs.
TEST(CpuPool, ALateHelperIsWaitedForAsleep) {
  CpuPool pool(2);
  const pid_t caller = gettid();
  std::atomic<bool> begun{false}, slept{false};
  const auto deadline = std::chrono::steady_clock::now() + test::kPatience;
  pool.parallel_for(2, [&](int64_t, int worker) {
    const std::atomic<bool>& awaited = worker == 0 ? begun : slept;
    if (worker != 0) begun = true;
    while (!awaited && std::chrono::steady_clock::now() < deadline) {
      if (worker != 0 && state_of(caller) == 'S') slept = true;
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(slept);
}

}  // namespace
}  // namespace foretoken::cpu
