#include "kernels/logits_row.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

TEST(LogitsRow, IsScoredWhileTheNextTokenIsKnown) {
  std::vector<int32_t> logits_rows = {3, 1}, row_slot = {0, 1, 1, 2}, positions = {0, 6, 7, 4};
  std::vector<SlotState> slots(3);
  slots[1].len = 8;
  slots[2].len = 5;
  StepTensors tensors{};
  tensors.logits_rows = logits_rows.data();
  tensors.row_slot = row_slot.data();
  tensors.positions = positions.data();
  const LogitsRow last = logits_row(tensors, slots.data(), 0);
  EXPECT_EQ(last.slot, 2);
  EXPECT_EQ(last.position, 4);
  EXPECT_FALSE(last.scored);
  const LogitsRow scored = logits_row(tensors, slots.data(), 1);
  EXPECT_EQ(scored.slot, 1);
  EXPECT_EQ(scored.position, 6);
  EXPECT_TRUE(scored.scored);
}

TEST(LogitsRow, HistoryContinuesWithTheDrafts) {
  std::vector<int32_t> tables = {0, 0, 2, 1};
  std::vector<int32_t> pages = {0, 0, 0, 13, 0, 0, 10, 11, 12};
  std::vector<SlotState> slots(2);
  slots[1].len = 4;
  slots[1].drafts[0] = 20;
  slots[1].drafts[1] = 21;
  BatchState batch{};
  batch.slots = slots.data();
  batch.block_tables = tables.data();
  batch.token_pages = pages.data();
  batch.max_blocks = 2;
  batch.block_size = 3;
  std::vector<int32_t> ids;
  for (int position = 0; position < 6; ++position) ids.push_back(history_id(batch, 1, position));
  EXPECT_EQ(ids, (std::vector<int32_t>{10, 11, 12, 13, 20, 21}));
}

}  // namespace
}  // namespace foretoken
