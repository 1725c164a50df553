#include "model/weights/tensor_part.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

// The turning rows of each head come in halves; the rest stays.
TEST(TensorPart, PairedRowsAreWantedInHalves) {
  const PairedHeads paired{6, 4};
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < 12; ++row) rows.push_back(paired.source_of(row));
  EXPECT_EQ(rows, (std::vector<int64_t>{0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11}));
  EXPECT_EQ(PairedHeads().source_of(7), 7);
}

// As in latent attention, whose rotary part is the last one.
TEST(TensorPart, PairedRowsMayStandBehindOthers) {
  const PairedHeads paired{7, 4, 2};
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < 14; ++row) rows.push_back(paired.source_of(row));
  EXPECT_EQ(rows, (std::vector<int64_t>{0, 1, 2, 4, 3, 5, 6, 7, 8, 9, 11, 10, 12, 13}));
}

// As in the indexers of Hy4: what turns ends a head in the file, and begins it here.
TEST(TensorPart, TheLastRowsOfHeadsMayBeWantedInFront) {
  std::vector<int64_t> halves, paired;
  for (int64_t row = 0; row < 12; ++row) {
    halves.push_back(PairedHeads{6, 0, 0, 4}.source_of(row));
    paired.push_back(PairedHeads{6, 4, 0, 4}.source_of(row));
  }
  EXPECT_EQ(halves, (std::vector<int64_t>{2, 3, 4, 5, 0, 1, 8, 9, 10, 11, 6, 7}));
  EXPECT_EQ(paired, (std::vector<int64_t>{2, 4, 3, 5, 0, 1, 8, 10, 9, 11, 6, 7}));
  EXPECT_FALSE((PairedHeads{6, 0, 0, 4}.are_as_wanted()));
  EXPECT_TRUE(PairedHeads().are_as_wanted());
}

TEST(TensorPart, AllThatFollowsIsWanted) {
  EXPECT_EQ((TensorPart{"a", 10, 4}.wanted()), 6);
  EXPECT_EQ((TensorPart{"a", 10, 4, 2}.wanted()), 2);
}

}  // namespace
}  // namespace foretoken
