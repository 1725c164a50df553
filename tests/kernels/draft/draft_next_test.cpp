#include "kernels/draft/draft_next.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class DraftNextTest : public StepTest {
 protected:
  static constexpr int kRows = 8;

  static void add_slot(StepData& d, int slot, int len, int wanted, int num_draft_tokens) {
    d.set_sequence(slot, Ids(static_cast<size_t>(len), 1), len - 1);
    d.set_drafts(slot, Ids(static_cast<size_t>(num_draft_tokens), 77));
    d.slots[slot].draft.num_draft_tokens = wanted;
    d.slots[slot].draft.computed = len;
  }
  // The pass before: rows of these slots, of which `logits_rows` brought the ids `sampled`.
  DraftNextArgs args(const Ids& row_slot, const Ids& logits_rows, const Ids& sampled, int pass,
                     int max_rows = kRows) {
    in_ = new_draft_tensors(kRows);
    out_ = new_draft_tensors(kRows);
    write(in_.rows.counts, std::vector<StepCounts>{{static_cast<int32_t>(row_slot.size()),
                                                    static_cast<int32_t>(sampled.size()), 0, 0}});
    write(in_.rows.row_slot, row_slot);
    write(in_.rows.logits_rows, logits_rows);
    write(in_.rows.sampled, sampled);
    return draft_next_args(in_, out_, max_rows, pass);
  }
  void run(StepData& d, const DraftNextArgs& args) {
    draft_next(queue(), args);
    pull(d);
    pass_ = read_pass(out_, kRows);
    EXPECT_EQ(pass_.counts.num_logits_rows, pass_.counts.num_rows);
    EXPECT_EQ(pass_.counts.num_spans, 0);
    for (int r = 0; r < kRows; ++r) {
      const bool live = r < pass_.counts.num_rows, padded = !live && r < args.max_rows;
      if (live) {
        EXPECT_EQ(pass_.logits_rows[r], r);
        EXPECT_EQ(pass_.kv_slot[r], d.kv_slot_of(pass_.row_slot[r], pass_.positions[r]));
        continue;
      }
      EXPECT_EQ(pass_.token_ids[r], padded ? 0 : -5);
      EXPECT_EQ(pass_.positions[r], padded ? 0 : -5);
      EXPECT_EQ(pass_.row_slot[r], padded ? d.sizes.num_slots : -5);
      EXPECT_EQ(pass_.kv_slot[r], padded ? 0 : -5);
      EXPECT_EQ(pass_.source[r], padded ? 0 : -5);
      EXPECT_EQ(pass_.seen[r], padded ? 0 : -5);
    }
  }
  template <class T>
  Ids live(const std::vector<T>& values) const {
    return Ids(values.begin(), values.begin() + pass_.counts.num_rows);
  }
  static Ids drafts(const StepData& d, int slot) {
    const SlotState& s = d.slots[slot];
    return Ids(s.drafts, s.drafts + s.num_draft_tokens);
  }

  DraftTensors in_{}, out_{};
  DraftPassData pass_;
};

TEST_F(DraftNextTest, TakesTheIdsAndLaysOutTheNextRows) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 5, 3, 0);
  add_slot(d, 1, 7, 1, 0);  // wants no second draft
  add_slot(d, 3, 9, 2, 0);
  push(d);
  run(d, args({0, 0, 1, 3, 3, 3}, {1, 2, 5}, {40, 41, 43}, 0));
  EXPECT_EQ(live(pass_.row_slot), (Ids{0, 3}));
  EXPECT_EQ(live(pass_.token_ids), (Ids{40, 43}));
  EXPECT_EQ(live(pass_.positions), (Ids{5, 9}));
  EXPECT_EQ(live(pass_.source), (Ids{1, 5}));
  EXPECT_EQ(live(pass_.seen), (Ids{3, 7})) << "what the target has computed";
  EXPECT_EQ(drafts(d, 0), (Ids{40}));
  EXPECT_EQ(drafts(d, 1), (Ids{41}));
  EXPECT_EQ(drafts(d, 3), (Ids{43}));
  for (const int s : {0, 1, 3}) EXPECT_EQ(d.slots[s].draft.written, 0);
}

TEST_F(DraftNextTest, ALaterPassFollows) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 5, 3, 2);
  add_slot(d, 3, 9, 4, 2);
  push(d);
  run(d, args({0, 3}, {0, 1}, {50, 51}, 2));
  EXPECT_EQ(live(pass_.row_slot), (Ids{3}));
  EXPECT_EQ(live(pass_.positions), (Ids{11}));
  EXPECT_EQ(live(pass_.source), (Ids{1}));
  EXPECT_EQ(live(pass_.seen), (Ids{7}));
  EXPECT_EQ(drafts(d, 0), (Ids{77, 77, 50}));
  EXPECT_EQ(drafts(d, 3), (Ids{77, 77, 51}));
}

TEST_F(DraftNextTest, AnInvalidIdEndsTheDraftsOfItsSlot) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 5, 4, 1);
  add_slot(d, 1, 5, 4, 0);
  add_slot(d, 2, 5, 4, 1);
  push(d);
  run(d, args({0, 1, 2}, {0, 1, 2}, {-1, -1, 60}, 1));
  EXPECT_EQ(live(pass_.row_slot), (Ids{2}));
  EXPECT_EQ(drafts(d, 0), (Ids{77}));
  EXPECT_EQ(d.slots[0].draft.num_draft_tokens, 1);
  EXPECT_EQ(drafts(d, 1), Ids{});
  EXPECT_EQ(d.slots[1].draft.num_draft_tokens, 0);
  EXPECT_EQ(drafts(d, 2), (Ids{77, 60}));
}

TEST_F(DraftNextTest, EntriesOfDraftsAreNotedWhereTheyStayExact) {
  for (const int keeps : {0, 1}) {
    StepData d{StepSizes{}};
    add_slot(d, 0, 5, 4, 1);
    add_slot(d, 1, 5, 2, 1);
    d.slots[1].draft.written = 6;
    push(d);
    DraftNextArgs a = args({0, 1}, {0, 1}, {40, 41}, 1);
    a.keeps_written = keeps;
    run(d, a);
    EXPECT_EQ(live(pass_.positions), (Ids{6}));
    EXPECT_EQ(d.slots[0].draft.written, keeps != 0 ? 7 : 0);
    EXPECT_EQ(d.slots[1].draft.written, 6) << "no further row";
    EXPECT_EQ(d.slots[0].draft.computed, 5) << "nothing is exact before it is accepted";
  }
}

TEST_F(DraftNextTest, IdsOfAnotherVocabularyComeFromTheMap) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 5, 2, 0);
  push(d);
  DraftNextArgs a = args({0}, {0}, {3}, 0);
  a.token_map = to_device(Ids{9, 8, 7, 6});
  run(d, a);
  EXPECT_EQ(live(pass_.token_ids), (Ids{6}));
  EXPECT_EQ(drafts(d, 0), (Ids{3})) << "drafts are ids of the target";
}

TEST_F(DraftNextTest, TheLastDraftAndAnEmptyPassLeavePaddingOnly) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 5, kMaxDraftTokens, kMaxDraftTokens - 1);
  push(d);
  run(d, args({0}, {0}, {3}, kMaxDraftTokens - 1, 4));
  EXPECT_EQ(pass_.counts.num_rows, 0);
  EXPECT_EQ(d.slots[0].num_draft_tokens, kMaxDraftTokens);
  run(d, args({}, {}, {}, 0, 4));
  EXPECT_EQ(pass_.counts.num_rows, 0);
}

TEST_F(DraftNextTest, RowsKeepTheirOrder) {
  StepSizes sizes;
  sizes.num_slots = 8;
  StepData d{sizes};
  for (int s = 0; s < 8; ++s) add_slot(d, s, 3 + s, s % 3 == 1 ? 1 : 2, 0);
  push(d);
  run(d, args({7, 6, 5, 4, 3, 2, 1, 0}, {0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, -1, 4, 3, 2, 1, 0}, 0));
  EXPECT_EQ(live(pass_.row_slot), (Ids{6, 3, 2, 0}));
  EXPECT_EQ(live(pass_.token_ids), (Ids{6, 3, 2, 0}));
  EXPECT_EQ(live(pass_.source), (Ids{1, 4, 5, 7}));
}

}  // namespace
}  // namespace foretoken
