#include "kernels/draft/draft_block.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class DraftBlockTest : public StepTest {
 protected:
  static constexpr int kRows = 400;
  static constexpr int kMask = 99;

  static void add_slot(StepData& d, int slot, int len, int wanted) {
    d.set_sequence(slot, Ids(static_cast<size_t>(len), 1), len - 1);
    d.slots[slot].draft.num_draft_tokens = wanted;
    d.params[slot].max_len = kRows;
  }
  // A catch-up with rows of these slots and ids, of which `logits_rows` are the last known tokens.
  void run(StepData& d, const Ids& row_slot, const Ids& token_ids, const Ids& logits_rows, int rows,
           int first_drafting, int first_entry = 1, int mask_source = 0) {
    DraftTensors in = new_draft_tensors(kRows);
    write(in.rows.counts,
          std::vector<StepCounts>{{static_cast<int32_t>(row_slot.size()),
                                   static_cast<int32_t>(logits_rows.size()), 0, 0}});
    write(in.rows.row_slot, row_slot);
    write(in.rows.token_ids, token_ids);
    write(in.rows.logits_rows, logits_rows);
    push(d);
    const DraftBlockArgs args{.batch = batch_,
                              .counts = in.rows.counts,
                              .token_ids = in.rows.token_ids,
                              .row_slot = in.rows.row_slot,
                              .logits_rows = in.rows.logits_rows,
                              .out = new_draft_tensors(kRows),
                              .last_seen = to_device(Ids(kRows, -5)),
                              .before = to_device(Ids(kRows, -5)),
                              .mask_id = kMask,
                              .rows = static_cast<int16_t>(rows),
                              .first_drafting = static_cast<int8_t>(first_drafting),
                              .first_entry = static_cast<int8_t>(first_entry),
                              .max_rows = kRows,
                              .mask_source = mask_source};
    draft_block(queue(), args);
    pass_ = read_pass(args.out, kRows);
    last_seen_ = read(args.last_seen, kRows);
    before_ = read(args.before, kRows);
    for (int r = 0; r < pass_.counts.num_rows; ++r) {
      EXPECT_EQ(pass_.kv_slot[r], d.kv_slot_of(pass_.row_slot[r], pass_.positions[r]));
    }
    for (int r = pass_.counts.num_rows; r < kRows; ++r) {
      EXPECT_EQ(pass_.token_ids[r], 0);
      EXPECT_EQ(pass_.row_slot[r], d.sizes.num_slots);
      EXPECT_EQ(last_seen_[r], 0);
      EXPECT_EQ(before_[r], 0);
    }
  }
  Ids live(const Ids& values) const {
    return {values.begin(), values.begin() + pass_.counts.num_rows};
  }
  Ids logits() const {
    return {pass_.logits_rows.begin(), pass_.logits_rows.begin() + pass_.counts.num_logits_rows};
  }

  DraftPassData pass_;
  Ids last_seen_, before_;
};

TEST_F(DraftBlockTest, MasksFollowTheLastKnownToken) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 5, 2);
  add_slot(d, 3, 9, 1);
  run(d, {0, 0, 3}, {40, 41, 43}, {1, 2}, 3, 1);
  EXPECT_EQ(live(pass_.row_slot), (Ids{0, 0, 0, 3, 3, 3}));
  EXPECT_EQ(live(pass_.token_ids), (Ids{41, kMask, kMask, 43, kMask, kMask}));
  EXPECT_EQ(live(pass_.positions), (Ids{5, 6, 7, 9, 10, 11}));
  EXPECT_EQ(live(last_seen_), (Ids{7, 7, 7, 11, 11, 11}));
  EXPECT_EQ(live(before_), (Ids{3, 4, 5, 7, 8, 9}));
  EXPECT_EQ(logits(), (Ids{1, 2, 4}));
}

TEST_F(DraftBlockTest, TheLastKnownTokenMayDraftToo) {
  StepData d{StepSizes{}};
  add_slot(d, 1, 6, 3);
  run(d, {1}, {40}, {0}, 3, 0);
  EXPECT_EQ(live(pass_.token_ids), (Ids{40, kMask, kMask}));
  EXPECT_EQ(live(last_seen_), (Ids{8, 8, 8}));
  EXPECT_EQ(live(before_), (Ids{5, 6, 7}));
  EXPECT_EQ(logits(), (Ids{0, 1, 2}));
}

TEST_F(DraftBlockTest, EntriesMayStandAtTheirPosition) {
  StepData d{StepSizes{}};
  add_slot(d, 1, 6, 2);
  run(d, {1}, {40}, {0}, 3, 0, 0);
  EXPECT_EQ(live(pass_.token_ids), (Ids{40, kMask, kMask}));
  EXPECT_EQ(live(pass_.positions), (Ids{5, 6, 7}));
  EXPECT_EQ(live(before_), (Ids{5, 6, 7}));
  EXPECT_EQ(logits(), (Ids{0, 1}));
}

TEST_F(DraftBlockTest, RowsFindTheirStates) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 5, 2);
  add_slot(d, 3, 9, 2);
  run(d, {0, 0, 3}, {40, 41, 43}, {1, 2}, 3, 0, 0, 64);
  EXPECT_EQ(live(pass_.source), (Ids{1, 64, 64, 2, 64, 64}));
  EXPECT_EQ(pass_.source[6], 0);
}

TEST_F(DraftBlockTest, WithoutSlotsThereIsPaddingOnly) {
  StepData d{StepSizes{}};
  add_slot(d, 1, 6, 0);
  run(d, {1}, {40}, {}, 4, 1);
  EXPECT_EQ(pass_.counts.num_rows, 0);
  EXPECT_EQ(pass_.counts.num_logits_rows, 0);
}

TEST_F(DraftBlockTest, ABlockEndsWithItsSequence) {
  StepData d{StepSizes{}};
  add_slot(d, 1, 6, 1);
  d.params[1].max_len = 8;
  run(d, {1}, {40}, {0}, 5, 1);
  EXPECT_EQ(live(pass_.positions), (Ids{6, 7}));
  EXPECT_EQ(live(last_seen_), (Ids{7, 7}));
  EXPECT_EQ(logits(), (Ids{1}));
}

TEST_F(DraftBlockTest, LongBlocksOfManySlots) {
  StepSizes sizes;
  sizes.num_slots = 5;
  sizes.max_blocks = 20;
  StepData d{sizes};
  Ids slots, ids;
  for (int s = 0; s < 5; ++s) {
    add_slot(d, s, 3 + s, kMaxDraftTokens - s);
    slots.push_back(s);
    ids.push_back(50 + s);
  }
  run(d, slots, ids, {4, 3, 2, 1, 0}, kMaxDraftTokens + 1, 1);
  int row = 0;
  for (int s = 4; s >= 0; --s) {
    for (int i = 0; i <= kMaxDraftTokens; ++i, ++row) {
      ASSERT_EQ(pass_.row_slot[row], s);
      ASSERT_EQ(pass_.positions[row], 3 + s + i);
      ASSERT_EQ(pass_.token_ids[row], i == 0 ? 50 + s : kMask);
    }
  }
  EXPECT_EQ(pass_.counts.num_rows, row);
  EXPECT_EQ(pass_.counts.num_logits_rows, row - 5 - (1 + 2 + 3 + 4));
}

}  // namespace
}  // namespace foretoken
