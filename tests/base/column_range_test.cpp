#include "base/column_range.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(ColumnRange, PiecesFollowOneAnother) {
  const ColumnRange whole{12, 0, 12};
  EXPECT_TRUE(whole.is_whole());
  EXPECT_EQ(whole.source_of(7), 7);
  const ColumnRange part{12, 4, 3};
  EXPECT_FALSE(part.is_whole());
  EXPECT_EQ(part.source_of(2), 6);
  const ColumnRange pieces{12, 2, 4, 2, 6};
  EXPECT_EQ(pieces.width(), 2);
  const int64_t want[] = {2, 3, 8, 9};
  for (int64_t column = 0; column < 4; ++column) {
    EXPECT_EQ(pieces.source_of(column), want[column]);
  }
}

}  // namespace
}  // namespace foretoken
