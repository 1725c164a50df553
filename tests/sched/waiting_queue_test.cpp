#include "sched/waiting_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace foretoken {
namespace {

TEST(WaitingQueue, ByPriorityThenByArrival) {
  WaitingQueue queue;
  std::array<Sequence, 4> sequences;
  const std::array<int, 4> priorities = {5, 0, 5, -1};
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.front(), nullptr);
  for (size_t i = 0; i < sequences.size(); ++i) {
    sequences[i].policy_priority = priorities[i];
    sequences[i].arrival = i;
    queue.push(sequences[i]);
  }
  EXPECT_EQ(queue.size(), 4);
  for (const size_t expected : {3u, 1u, 0u, 2u}) {
    ASSERT_EQ(queue.front(), &sequences[expected]);
    queue.remove(*queue.front());
  }
  EXPECT_TRUE(queue.empty());
}

TEST(WaitingQueue, ALateComerWithAnEarlyArrivalComesFirst) {
  WaitingQueue queue;
  std::array<Sequence, 3> sequences;
  for (size_t i = 0; i < sequences.size(); ++i) sequences[i].arrival = i;
  queue.push(sequences[1]);
  queue.push(sequences[2]);
  queue.push(sequences[0]);
  EXPECT_EQ(queue.front(), &sequences[0]);
}

TEST(WaitingQueue, RandomUseEqualsASortedList) {
  std::mt19937 random(1);
  WaitingQueue queue;
  std::array<Sequence, 60> sequences;
  std::vector<Sequence*> expected;
  const auto before = [](const Sequence* a, const Sequence* b) { return runs_before(*a, *b); };
  for (uint64_t i = 0; i < 20000; ++i) {
    Sequence& sequence = sequences[random() % sequences.size()];
    const auto at = std::find(expected.begin(), expected.end(), &sequence);
    if (at != expected.end()) {
      queue.remove(sequence);
      expected.erase(at);
    } else {
      sequence.policy_priority = static_cast<int>(random() % 4);
      sequence.arrival = i;
      queue.push(sequence);
      expected.insert(std::upper_bound(expected.begin(), expected.end(), &sequence, before),
                      &sequence);
    }
    if (!expected.empty() && random() % 3 == 0) {
      queue.remove(*expected.front());
      expected.erase(expected.begin());
    }
    ASSERT_EQ(queue.size(), static_cast<int>(expected.size()));
    ASSERT_EQ(queue.front(), expected.empty() ? nullptr : expected.front());
  }
}

}  // namespace
}  // namespace foretoken
