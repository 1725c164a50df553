#include "draft/block_pass.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class BlockPassTest : public StepTest {};

TEST_F(BlockPassTest, LaysOutABlockAndTakesItsIds) {
  StepData d{StepSizes{}};
  d.set_sequence(1, Ids(6, 1), 5);
  d.slots[1].draft.num_draft_tokens = 2;
  d.params[1].max_len = 100;
  push(d);
  DraftTensors known = new_draft_tensors(4);
  write(known.rows.counts, std::vector<StepCounts>{{1, 1, 0, 0}});
  write(known.rows.row_slot, Ids{1});
  write(known.rows.token_ids, Ids{40});
  write(known.rows.logits_rows, Ids{0});
  BlockPass pass(device(), 4, {.mask_id = 9, .rows = 4, .max_draft_tokens = 3});
  ASSERT_TRUE(pass.take().ok());
  EXPECT_EQ(pass.max_logits_rows(), 12);
  const DraftStep step{.batch = batch_};
  EXPECT_EQ(pass.lay_out(queue(), step, {2, 4, 2}, known), 8);
  EXPECT_EQ(read(pass.tensors().rows.token_ids, 4), (Ids{40, 9, 9, 9}));
  EXPECT_EQ(read(pass.last_seen(), 4), (Ids{9, 9, 9, 9}));
  EXPECT_EQ(read(pass.drawn().positions, 3), (Ids{4, 5, 6}));
  EXPECT_EQ(pass.drawn().row_slot, pass.tensors().rows.row_slot);
  write(pass.drawn().sampled, Ids{50, 51});
  pass.take_drafts(queue(), step, 4);
  pull(d);
  EXPECT_EQ(d.slots[1].num_draft_tokens, 2);
  EXPECT_EQ(d.slots[1].drafts[1], 51);
}

}  // namespace
}  // namespace foretoken
