#include "sched/sequence.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

Sequence sequence_of(int known, int max_len) {
  Sequence sequence;
  sequence.tokens.assign(static_cast<size_t>(known), 1);
  sequence.max_len = max_len;
  return sequence;
}

TEST(Sequence, WithoutStepsInFlightTheBoundsMeet) {
  const Sequence sequence = sequence_of(5, 10);
  EXPECT_EQ(sequence.known_len(), 5);
  EXPECT_EQ(sequence.len_bound(), 5);
  EXPECT_EQ(sequence.len_floor(), 5);
}

TEST(Sequence, StepsInFlightAddOneToTheirBound) {
  Sequence sequence = sequence_of(5, 20);
  sequence.num_sampling = 2;
  sequence.inflight_bound = 2 * (3 + 1);
  EXPECT_EQ(sequence.len_floor(), 7);
  EXPECT_EQ(sequence.len_bound(), 13);
}

TEST(Sequence, NeitherBoundPassesTheEnd) {
  Sequence sequence = sequence_of(9, 10);
  sequence.num_sampling = 3;
  sequence.inflight_bound = 12;
  EXPECT_EQ(sequence.len_floor(), 10);
  EXPECT_EQ(sequence.len_bound(), 10);
}

}  // namespace
}  // namespace foretoken
