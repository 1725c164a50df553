#include "device/cpu/threads_apart.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "device/cpu/cpu_thread.h"

namespace foretoken::cpu {
namespace {

constexpr auto kAtOnce = std::chrono::microseconds(0);

cpu_set_t allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

// Moves the calling thread onto a CPU and then gives it all of `allowed` again.
void sit_on(int cpu, const cpu_set_t& allowed) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

int first_cpu(const cpu_set_t& set) {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) return cpu;
  }
  return -1;
}

void only(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

TEST(ThreadsApart, TheLaterThreadLeavesASharedCore) {
  if (num_physical_cores() < 2) GTEST_SKIP() << "one core";
  const cpu_set_t before = allowed_cpus();
  const int cpu = first_cpu(before);
  ThreadsApart apart(2, kAtOnce);
  std::thread([&] {
    only(cpu);
    EXPECT_FALSE(apart.settle(0)) << "the first worker stays";
  }).join();
  std::thread([&] {
    bool asked = false;
    // The scheduler may move the thread away by itself in between.
    for (int i = 0; i < 1000 && !asked; ++i) {
      sit_on(cpu, before);
      asked = apart.settle(1);
    }
    EXPECT_TRUE(asked);
    const cpu_set_t after = allowed_cpus();
    EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "nothing stays pinned";
  }).join();
}

TEST(ThreadsApart, NobodyMovesWhereNoCoreIsFree) {
  ThreadsApart apart(2, kAtOnce);
  const int cpu = first_cpu(allowed_cpus());
  for (int worker = 0; worker < 2; ++worker) {
    std::thread([&] {
      only(cpu);
      EXPECT_FALSE(apart.settle(worker));
    }).join();
  }
}

TEST(ThreadsApart, AsksOncePerInterval) {
  if (num_physical_cores() < 2) GTEST_SKIP() << "one core";
  const cpu_set_t before = allowed_cpus();
  const int cpu = first_cpu(before);
  ThreadsApart apart(2, std::chrono::hours(1));
  std::thread([&] {
    only(cpu);
    apart.settle(0);
  }).join();
  std::thread([&] {
    int asked = 0;
    for (int i = 0; i < 200; ++i) {
      sit_on(cpu, before);
      asked += apart.settle(1) ? 1 : 0;
    }
    EXPECT_LE(asked, 1);
  }).join();
}

}  // namespace
}  // namespace foretoken::cpu
