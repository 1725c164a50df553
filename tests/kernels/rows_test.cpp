#include "kernels/cpu/rows.h"

#include <gtest/gtest.h>

namespace foretoken::cpu {
namespace {

TEST(Rows, LiveRowsFollowTheirKind) {
  const StepCounts counts{7, 5, 1, 0};
  EXPECT_EQ(live_rows(counts, RowKind::kToken, 0, 16), 7);
  EXPECT_EQ(live_rows(counts, RowKind::kToken, 0, 4), 4);
  EXPECT_EQ(live_rows(counts, RowKind::kLogits, 2, 16), 3);
  EXPECT_EQ(live_rows(counts, RowKind::kLogits, 8, 16), 0);
}

TEST(Rows, EveryRowOnceWhateverItCosts) {
  CpuPool pool(3);
  for (const int64_t cost : {0, 1, 100, 100000}) {
    for (const int64_t rows : {0, 1, 5, 300}) {
      std::vector<int> seen(static_cast<size_t>(rows), 0);
      for_each_row(pool, rows, cost, [&](int64_t row) { ++seen[static_cast<size_t>(row)]; });
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), rows);
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
