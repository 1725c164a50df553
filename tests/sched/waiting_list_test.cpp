#include "sched/waiting_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>

namespace foretoken {
namespace {

TEST(WaitingList, FirstComeFirstServedAndPreemptedToTheFront) {
  WaitingList list;
  std::array<Sequence, 3> sequences;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  list.push_back(sequences[0]);
  list.push_back(sequences[1]);
  list.push_front(sequences[2]);
  EXPECT_EQ(list.size(), 3);
  for (const int expected : {2, 0, 1}) {
    ASSERT_EQ(list.front(), &sequences[static_cast<size_t>(expected)]);
    list.remove(*list.front());
  }
  EXPECT_TRUE(list.empty());
}

TEST(WaitingList, RandomUseEqualsADeque) {
  std::mt19937 random(1);
  WaitingList list;
  std::deque<Sequence*> expected;
  std::array<Sequence, 20> sequences;
  for (int i = 0; i < 20000; ++i) {
    Sequence& sequence = sequences[random() % sequences.size()];
    const auto at = std::find(expected.begin(), expected.end(), &sequence);
    if (at != expected.end()) {
      list.remove(sequence);
      expected.erase(at);
      EXPECT_EQ(sequence.next, nullptr);
      EXPECT_EQ(sequence.prev, nullptr);
    } else if (random() % 2 == 0) {
      list.push_back(sequence);
      expected.push_back(&sequence);
    } else {
      list.push_front(sequence);
      expected.push_front(&sequence);
    }
    ASSERT_EQ(list.size(), static_cast<int>(expected.size()));
    Sequence* walk = list.front();
    for (const Sequence* wanted : expected) {
      ASSERT_EQ(walk, wanted);
      walk = walk->next;
    }
    ASSERT_EQ(walk, nullptr);
  }
}

}  // namespace
}  // namespace foretoken
