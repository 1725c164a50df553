#include "kernels/draft/cpu/draft_pass.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken::cpu {
namespace {

TEST(DraftPass, RowsThenLogitsThenPadding) {
  std::vector<int32_t> tables = {3, 1, 2, 5, 0, 0};  // two slots and the null slot
  BatchState batch{};
  batch.block_tables = tables.data();
  batch.max_blocks = 2;
  batch.block_size = 4;
  batch.num_slots = 2;
  StepCounts counts{};
  std::vector<int32_t> ids(5, -5), positions(ids), slots(ids), kv(ids), logits(ids), source(ids);
  DraftTensors tensors{};
  tensors.rows.counts = &counts;
  tensors.rows.token_ids = ids.data();
  tensors.rows.positions = positions.data();
  tensors.rows.row_slot = slots.data();
  tensors.rows.kv_slot = kv.data();
  tensors.rows.logits_rows = logits.data();
  tensors.source = source.data();

  DraftPass pass(tensors, batch, 4);
  EXPECT_EQ(pass.rows_left(), 4);
  pass.add_row(1, 6, 40, 9);
  pass.add_row(0, 3, 41, 8);
  pass.want_logits();
  EXPECT_EQ(pass.rows_left(), 2);
  pass.finish();
  EXPECT_EQ(counts.num_rows, 2);
  EXPECT_EQ(counts.num_logits_rows, 1);
  EXPECT_EQ(counts.num_spans, 0);
  EXPECT_EQ(ids, (std::vector<int32_t>{40, 41, 0, 0, -5}));
  EXPECT_EQ(positions, (std::vector<int32_t>{6, 3, 0, 0, -5}));
  EXPECT_EQ(slots, (std::vector<int32_t>{1, 0, 2, 2, -5}));
  EXPECT_EQ(kv, (std::vector<int32_t>{5 * 4 + 2, 3 * 4 + 3, 0, 0, -5}));
  EXPECT_EQ(source, (std::vector<int32_t>{9, 8, 0, 0, -5}));
  EXPECT_EQ(logits[0], 1);
}

}  // namespace
}  // namespace foretoken::cpu
