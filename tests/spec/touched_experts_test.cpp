#include "spec/touched_experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace foretoken {
namespace {

TEST(TouchedExperts, OneRowTouchesItsOwnAndManyTouchAll) {
  EXPECT_EQ(touched_share(64, 6, 0), 0);
  EXPECT_DOUBLE_EQ(touched_share(64, 6, 1), 6.0 / 64);
  EXPECT_EQ(touched_share(8, 8, 1), 1);
  EXPECT_EQ(touched_share(1, 1, 5), 1);
  EXPECT_NEAR(touched_share(256, 8, 4096), 1, 1e-12);
}

// Against draws of rows that choose without looking at one another.
TEST(TouchedExperts, IsTheMeanOfIndependentChoices) {
  constexpr int kCount = 64, kTop = 6, kDraws = 400;
  std::mt19937 random(5);
  std::vector<int> experts(kCount);
  std::iota(experts.begin(), experts.end(), 0);
  for (const int rows : {2, 4, 16}) {
    size_t touched = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::set<int> seen;
      for (int row = 0; row < rows; ++row) {
        std::shuffle(experts.begin(), experts.end(), random);
        seen.insert(experts.begin(), experts.begin() + kTop);
      }
      touched += seen.size();
    }
    const double mean = static_cast<double>(touched) / kDraws;
    EXPECT_NEAR(kCount * touched_share(kCount, kTop, rows), mean, 0.4) << rows << " rows";
  }
}

}  // namespace
}  // namespace foretoken
