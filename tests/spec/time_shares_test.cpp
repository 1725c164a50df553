#include "spec/time_shares.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(TimeShares, AreLinearBetweenSizesAndLevelBeyond) {
  TimeShares shares;
  EXPECT_EQ(shares.at(3), TimeShares::kOne);
  shares.add(2, 1000);
  shares.add(6, 3000);
  EXPECT_EQ(shares.at(1), 1000);
  EXPECT_EQ(shares.at(2), 1000);
  EXPECT_EQ(shares.at(3), 1500);
  EXPECT_EQ(shares.at(6), 3000);
  EXPECT_EQ(shares.at(99), 3000);
}

TEST(TimeShares, RatiosStayWithinASixteenthAndAll) {
  TimeShares shares;
  shares.add_ratio(1, 50, 100);
  shares.add_ratio(2, 120, 100);
  shares.add_ratio(3, -5, 100);
  shares.add_ratio(4, 5, 0);
  EXPECT_EQ(shares.at(1), TimeShares::kOne / 2);
  EXPECT_EQ(shares.at(2), TimeShares::kOne);
  EXPECT_EQ(shares.at(3), TimeShares::kOne / 16);
  EXPECT_EQ(shares.at(4), TimeShares::kOne);
}

}  // namespace
}  // namespace foretoken
