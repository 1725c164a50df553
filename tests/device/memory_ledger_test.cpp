#include "device/memory_ledger.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

class Ledger : public testing::Test {
 protected:
  void* at(int i) { return &memory_[i]; }
  void note(int i, size_t bytes, MemoryRole role) {
    EXPECT_TRUE(ledger_.note(at(i), bytes, role)) << i;
  }

  MemoryLedger ledger_;

 private:
  char memory_[8] = {};
};

TEST_F(Ledger, KnowsWeightsAndBlocksThatAreNeeded) {
  note(0, 10, MemoryRole::kWeights);
  note(1, 20, MemoryRole::kBlocks);
  note(2, 30, MemoryRole::kWeights);
  EXPECT_FALSE(ledger_.note(at(3), 40, MemoryRole::kKept));
  EXPECT_TRUE(ledger_.drop(at(0)));
  std::vector<size_t> sizes;
  ledger_.for_each([&](void*, size_t bytes, MemoryRole) { sizes.push_back(bytes); });
  EXPECT_EQ(sizes, (std::vector<size_t>{20, 30}));
}

TEST_F(Ledger, WeightsComeAgainInTheirOrder) {
  note(0, 10, MemoryRole::kWeights);
  note(1, 20, MemoryRole::kBlocks);
  note(2, 30, MemoryRole::kWeights);
  note(3, 40, MemoryRole::kWeights);
  EXPECT_TRUE(ledger_.drop(at(2)));  // a load needed it for a while
  EXPECT_EQ(ledger_.again(10), nullptr);
  for (int turn = 0; turn < 2; ++turn) {
    ledger_.begin_again();
    EXPECT_EQ(ledger_.again(10), at(0));
    EXPECT_EQ(ledger_.again(30), nullptr);
    EXPECT_FALSE(ledger_.note(at(5), 30, MemoryRole::kWeights));
    EXPECT_EQ(ledger_.again(40), at(3));
    EXPECT_TRUE(ledger_.end_again());
    EXPECT_FALSE(ledger_.drop(at(0)));
    EXPECT_FALSE(ledger_.drop(at(3)));
  }
  EXPECT_TRUE(ledger_.drop(at(0)));
}

TEST_F(Ledger, OtherSizesAndNumbersDiffer) {
  note(0, 10, MemoryRole::kWeights);
  note(1, 20, MemoryRole::kWeights);
  ledger_.begin_again();
  EXPECT_EQ(ledger_.again(11), nullptr);
  EXPECT_EQ(ledger_.again(20), nullptr);
  EXPECT_FALSE(ledger_.end_again());
  ledger_.begin_again();
  EXPECT_EQ(ledger_.again(10), at(0));
  EXPECT_FALSE(ledger_.end_again());
  ledger_.begin_again();
  EXPECT_EQ(ledger_.again(10), at(0));
  EXPECT_EQ(ledger_.again(20), at(1));
  EXPECT_EQ(ledger_.again(30), nullptr);
  EXPECT_FALSE(ledger_.end_again());
}

}  // namespace
}  // namespace foretoken
