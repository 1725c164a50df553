#include "model/arch/alibi.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken {
namespace {

std::vector<float> powers(std::initializer_list<double> exponents) {
  std::vector<float> all;
  for (const double exponent : exponents) all.push_back(static_cast<float>(std::exp2(-exponent)));
  return all;
}

TEST(Alibi, PowersOfTwoHaveOneRow) {
  EXPECT_EQ(alibi_slopes(8), powers({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(alibi_slopes_by_parity(8, 8), alibi_slopes(8));
  EXPECT_EQ(alibi_slopes(1), powers({8}));
  EXPECT_EQ(alibi_slopes_by_parity(1, 8), powers({8}));
  EXPECT_EQ(alibi_slopes_by_parity(4, 16), powers({4, 8, 12, 16}));
}

TEST(Alibi, OtherNumbersTakeFromTheNextPowerOfTwo) {
  EXPECT_EQ(alibi_slopes(6), powers({2, 4, 6, 8, 1, 3}));
  EXPECT_EQ(alibi_slopes(3), powers({4, 8, 2}));
  EXPECT_EQ(alibi_slopes_by_parity(6, 8), powers({2, 4, 6, 8, 1, 3}));
  EXPECT_EQ(alibi_slopes_by_parity(3, 8), powers({4, 8, 2}));
  EXPECT_EQ(alibi_slopes(71).size(), 71u);
}

}  // namespace
}  // namespace foretoken
