#include "kernels/experts/cpu/expert_units.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <tuple>
#include <vector>

namespace foretoken::cpu {
namespace {

// Every pair of an entry and a slice of its expert is in one unit.
void expect_whole(const std::vector<int32_t>& begins, const ExpertUnits::Sizes& sizes) {
  const auto count = static_cast<int32_t>(begins.size()) - 1;
  std::vector<int32_t> all = begins;
  const ExpertLists lists{all.data(), nullptr, count, 1};
  const auto units = std::make_unique<ExpertUnits>();
  units->cut(lists, sizes);
  std::set<std::tuple<int, int>> seen;
  for (int64_t i = 0; i < units->size(); ++i) {
    const ExpertUnit unit = units->at(i);
    ASSERT_LE(unit.num_entries, sizes.tile_rows);
    ASSERT_GT(unit.num_entries, 0);
    for (int e = unit.first_entry; e < unit.first_entry + unit.num_entries; ++e) {
      ASSERT_GE(e, begins[size_t(unit.expert)]);
      ASSERT_LT(e, begins[size_t(unit.expert) + 1]);
      for (int s = unit.first_slice; s < unit.first_slice + unit.num_slices; ++s) {
        ASSERT_EQ(s / sizes.slices, unit.expert);
        ASSERT_TRUE(seen.insert({e, s}).second) << "entry " << e << " slice " << s;
      }
    }
  }
  EXPECT_EQ(seen.size(), size_t(begins.back()) * size_t(sizes.slices));
}

TEST(ExpertUnits, CoverEveryEntryOnce) {
  expect_whole({0, 0, 1, 1, 4, 4}, {5, 3, 64});
  expect_whole({0, 1, 2, 3}, {1, 1, 64});
  expect_whole({0, 9, 9, 209, 210}, {7, 3, 64});
  expect_whole({0, 0, 0}, {4, 2, 64});
  expect_whole({0, 64, 129}, {4, 4, 64});
}

// Few entries spread over the threads by slice; many share what is gathered.
TEST(ExpertUnits, AreNarrowForFewEntries) {
  std::vector<int32_t> begins = {0, 1, 101};
  const auto units = std::make_unique<ExpertUnits>();
  units->cut({begins.data(), nullptr, 2, 1}, {8, 4, 64});
  EXPECT_EQ(units->size(), 8 + 2 * 2);
  EXPECT_EQ(units->at(0).num_slices, 1);
  EXPECT_EQ(units->at(8).num_slices, 4);
  EXPECT_EQ(units->at(8).num_entries, 64);
  EXPECT_EQ(units->at(9).num_entries, 36);
  EXPECT_EQ(units->at(9).first_slice, 8);
  EXPECT_EQ(units->at(10).first_slice, 12);
}

}  // namespace
}  // namespace foretoken::cpu
