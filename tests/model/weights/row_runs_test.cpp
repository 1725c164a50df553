#include "model/weights/row_runs.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

RowRun run_of(const char* name, int64_t first_row, int64_t num_rows) {
  return {name, nullptr, first_row, num_rows, {4, 0, 4}, nullptr};
}

TEST(RowRuns, FindsThePartsOfRuns) {
  const std::vector<RowRun> runs = {run_of("a", 10, 3), run_of("b", 0, 1), run_of("none", 0, 0),
                                    run_of("c", 5, 4)};
  const RowRuns all(runs);
  EXPECT_EQ(all.num_rows(), 8);
  const auto found = all.between(2, 6);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(found[0].first_row, 12);
  EXPECT_EQ(found[0].num_rows, 1);
  EXPECT_EQ(found[1].name, "b");
  EXPECT_EQ(found[2].first_row, 5);
  EXPECT_EQ(found[2].num_rows, 2);
  EXPECT_TRUE(all.between(3, 3).empty());
  EXPECT_EQ(all.between(0, 8).size(), 3u);
  EXPECT_EQ(all.between(7, 8)[0].first_row, 8);
}

// Against going through all runs, for every range.
TEST(RowRuns, EveryRangeHasItsRows) {
  std::vector<RowRun> runs;
  for (int64_t i = 0; i < 40; ++i) runs.push_back(run_of("x", 100 * i, i % 4));
  std::vector<int64_t> rows;
  for (const RowRun& run : runs) {
    for (int64_t r = 0; r < run.num_rows; ++r) rows.push_back(run.first_row + r);
  }
  const RowRuns all(runs);
  ASSERT_EQ(all.num_rows(), static_cast<int64_t>(rows.size()));
  for (int64_t first = 0; first < all.num_rows(); ++first) {
    for (int64_t end = first; end <= all.num_rows(); ++end) {
      std::vector<int64_t> got;
      for (const RowRun& run : all.between(first, end)) {
        for (int64_t r = 0; r < run.num_rows; ++r) got.push_back(run.first_row + r);
      }
      ASSERT_EQ(got, std::vector<int64_t>(rows.begin() + first, rows.begin() + end));
    }
  }
}

}  // namespace
}  // namespace foretoken
