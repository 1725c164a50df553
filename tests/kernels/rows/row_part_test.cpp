#include "kernels/rows/row_part.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// Elements 10 to 25 of rows whose groups have 8: the last six of group 1, group 2, two of group 3.
TEST(RowPart, GroupsBeginAndEndWithinIt) {
  constexpr RowPart kPart{.column = 3, .count = 16, .begin = 10, .group = 8, .entry = 0};
  EXPECT_EQ(kPart.first_group(), 1);
  EXPECT_EQ(kPart.last_group(), 3);
  const int begins[] = {0, 6, 14}, ends[] = {6, 14, 16};
  for (int g = 1; g <= 3; ++g) {
    EXPECT_EQ(kPart.begin_of(g), begins[g - 1]) << g;
    EXPECT_EQ(kPart.end_of(g), ends[g - 1]) << g;
  }
}

}  // namespace
}  // namespace foretoken
