#include "kernels/live_rows.h"

#include <gtest/gtest.h>

#include "kernels/cpu/rows.h"
#include "kernels/op_view.h"

namespace foretoken {
namespace {

constexpr StepCounts kCounts{7, 5, 1, 0};

TEST(LiveRows, AnOffsetIsOfLogitsRowsAlone) {
  for (const int offset : {0, 2, 7, 9}) {
    EXPECT_EQ(live_rows_of(kCounts, RowKind::kToken, offset, 16), 7) << offset;
  }
  EXPECT_EQ(live_rows_of(kCounts, RowKind::kLogits, 0, 16), 5);
  EXPECT_EQ(live_rows_of(kCounts, RowKind::kLogits, 2, 16), 3);
  EXPECT_EQ(live_rows_of(kCounts, RowKind::kLogits, 5, 16), 0);
  EXPECT_EQ(live_rows_of(kCounts, RowKind::kLogits, 8, 16), 0);
}

TEST(LiveRows, AreNoMoreThanTheOpTakes) {
  EXPECT_EQ(live_rows_of(kCounts, RowKind::kToken, 0, 4), 4);
  EXPECT_EQ(live_rows_of(kCounts, RowKind::kLogits, 1, 2), 2);
}

// What a CPU computes is what it is said to cost.
TEST(LiveRows, TheCpuAndCostsCountAlike) {
  LiveRows live;
  live.counts = kCounts;
  for (const RowKind kind : {RowKind::kToken, RowKind::kLogits}) {
    for (const int offset : {0, 3, 6}) {
      const int wanted = live_rows_of(kCounts, kind, offset, 6);
      EXPECT_EQ(cpu::live_rows(kCounts, kind, offset, 6), wanted);
      EXPECT_EQ(live_count(live, kind, offset, 6), wanted);
    }
  }
}

}  // namespace
}  // namespace foretoken
