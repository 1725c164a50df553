#include "kernels/attention/attention_splits.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Splits = AttentionSplits;

TEST(AttentionSplits, EveryPositionLiesInTheSplitOfItsNumber) {
  for (int position = 0; position < 300000; ++position) {
    const int begin = Splits::begin(Splits::of(position));
    ASSERT_EQ(begin, Splits::floor(position)) << position;
    ASSERT_LE(begin, position);
    ASSERT_LT(position, begin + Splits::width(position));
    ASSERT_EQ(begin % Splits::width(position), 0) << position;
  }
}

TEST(AttentionSplits, OneFollowsTheOther) {
  EXPECT_EQ(Splits::of(0), 0);
  for (int split = 0; split < 400; ++split) {
    const int end = Splits::begin(split + 1);
    ASSERT_EQ(end, Splits::begin(split) + Splits::width(Splits::begin(split))) << split;
    ASSERT_EQ(Splits::of(end - 1), split);
    ASSERT_EQ(Splits::of(end), split + 1);
  }
}

TEST(AttentionSplits, TheyGrowTwice) {
  EXPECT_EQ(Splits::width(0), kAttentionSplit);
  EXPECT_EQ(Splits::width(Splits::kNearEnd - 1), kAttentionSplit);
  EXPECT_EQ(Splits::width(Splits::kNearEnd), 2 * kAttentionSplit);
  EXPECT_EQ(Splits::width(Splits::kMiddleEnd - 1), 2 * kAttentionSplit);
  EXPECT_EQ(Splits::width(Splits::kMiddleEnd), 4 * kAttentionSplit);
  EXPECT_EQ(Splits::width(1 << 30), 4 * kAttentionSplit);
}

}  // namespace
}  // namespace foretoken
