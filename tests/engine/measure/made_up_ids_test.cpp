#include "engine/measure/made_up_ids.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

#include "support/test_device.h"

namespace foretoken {
namespace {

class MadeUpIdsTest : public DeviceTest {
 protected:
  static constexpr int32_t kVocab = 32000;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    pinned_.emplace(device(), MemoryKind::kPinned);
    ASSERT_TRUE(ids_.draw(*pinned_, kVocab).ok());
  }
  void TearDown() override {
    pinned_.reset();
    DeviceTest::TearDown();
  }

  std::optional<Arena> pinned_;
  MadeUpIds ids_;
};

TEST_F(MadeUpIdsTest, AreTheSameAlwaysAndCoverTheVocabulary) {
  MadeUpIds again;
  ASSERT_TRUE(again.draw(*pinned_, kVocab).ok());
  std::set<int32_t> different;
  int64_t sum = 0;
  for (size_t i = 0; i < MadeUpIds::kCount; ++i) {
    ASSERT_EQ(ids_.at(i), again.at(i));
    ASSERT_GE(ids_.at(i), 0);
    ASSERT_LT(ids_.at(i), kVocab);
    different.insert(ids_.at(i));
    sum += ids_.at(i);
  }
  EXPECT_EQ(ids_.at(MadeUpIds::kCount + 3), ids_.at(3));
  // Of 65,536 draws from 32,000 all but exp(-2.05) are seen.
  EXPECT_NEAR(static_cast<double>(different.size()), 27870, 300);
  EXPECT_NEAR(static_cast<double>(sum) / MadeUpIds::kCount, kVocab / 2.0, 150);
}

TEST_F(MadeUpIdsTest, DraftsOfSequencesDiffer) {
  std::vector<SlotState> states(1024 / kMaxDraftTokens);
  std::set<int32_t> different;
  for (size_t i = 0; i < states.size(); ++i) {
    ids_.write_drafts(i, states[i]);
    different.insert(std::begin(states[i].drafts), std::end(states[i].drafts));
  }
  EXPECT_GT(different.size(), states.size() * kMaxDraftTokens * 95 / 100);
}

// Runs of blocks and those that lie apart, and more ids than were drawn.
TEST_F(MadeUpIdsTest, PagesOfTheBlocksAreFilledAndNoOthers) {
  constexpr size_t kBlockSize = 1024, kBlocks = 80;
  auto* pages = allocate<int32_t>(kBlockSize * kBlocks);
  queue().fill(pages, 0xFF, kBlockSize * kBlocks * sizeof(int32_t));
  BatchState batch{};
  batch.token_pages = pages;
  batch.block_size = kBlockSize;
  std::vector<int32_t> blocks = {1, 2, 5};
  for (int32_t block = 9; block < 79; ++block) blocks.push_back(block);
  ids_.copy_to_pages(queue(), batch, blocks);
  const std::vector<int32_t> found = read(pages, kBlockSize * kBlocks);
  std::vector<int32_t> expected(found.size(), -1);
  size_t place = 0;
  for (const int32_t block : blocks) {
    for (size_t i = 0; i < kBlockSize; ++i) {
      expected[static_cast<size_t>(block) * kBlockSize + i] = ids_.at(place++);
    }
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace foretoken
