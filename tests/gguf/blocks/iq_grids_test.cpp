#include "gguf/blocks/iq_grids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace foretoken {
namespace {

template <int kPoints, int kNeighbours>
void expect_grid(const int8_t (&grid)[kPoints][kNeighbours], std::set<int> values) {
  std::set<std::vector<int>> points;
  for (const auto& point : grid) {
    points.emplace(std::begin(point), std::end(point));
    for (const int value : point) EXPECT_TRUE(values.contains(value)) << value;
  }
  EXPECT_EQ(points.size(), static_cast<size_t>(kPoints));
}

TEST(IqGrids, PointsDifferAndHaveTheFormatsValues) {
  expect_grid(iq2_xxs_grid(), {8, 25, 43});
  expect_grid(iq2_xs_grid(), {8, 25, 43});
  expect_grid(iq2_s_grid(), {8, 25, 43});
  expect_grid(iq3_xxs_grid(), {4, 12, 20, 28, 36, 44, 52, 62});
  expect_grid(iq3_s_grid(), {1, 3, 5, 7, 9, 11, 13, 15});
  expect_grid(iq1_grid(), {-1, 0, 1});
}

TEST(IqGrids, SignsComeInPairs) {
  EXPECT_EQ(iq_signs(0), 0);
  EXPECT_EQ(iq_signs(1), 129);
  EXPECT_EQ(iq_signs(3), 3);
  EXPECT_EQ(iq_signs(128 | 127), 255);
}

}  // namespace
}  // namespace foretoken
