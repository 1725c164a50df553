#include "model/files/containers/marlin_order.h"

#include <gtest/gtest.h>

#include <set>

namespace foretoken {
namespace {

// A place of its own for everything in a tile; the first ones as compressed-tensors has them.
TEST(MarlinOrder, IsAPermutation) {
  for (const int bits : {4, 8}) {
    const std::vector<int32_t>& order = marlin_order(bits);
    const std::set<int32_t> places(order.begin(), order.end());
    EXPECT_EQ(std::ssize(places), kMarlinRows * kMarlinTile);
    EXPECT_EQ(*places.rbegin(), kMarlinRows * kMarlinTile - 1);
    EXPECT_EQ(order[0], 0);
    EXPECT_EQ(order[128], 1);
  }
  std::set<int64_t> words, scales;
  for (int64_t row = 0; row < kMarlinRows; ++row) {
    for (const int64_t half : {0, 1}) words.insert(marlin_place(row, half));
    scales.insert(marlin_scale_of(row));
  }
  EXPECT_EQ(words.size(), 128u);
  EXPECT_EQ(*words.rbegin(), 127);
  EXPECT_EQ(scales.size(), 64u);
  EXPECT_EQ(marlin_place(1, 0), 4);
}

}  // namespace
}  // namespace foretoken
