#include "kernels/draft/draft_take.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class DraftTakeTest : public StepTest {
 protected:
  static void add_slot(StepData& d, int slot, int len, int wanted) {
    d.set_sequence(slot, Ids(static_cast<size_t>(len), 1), len - 1);
    d.set_drafts(slot, {});
    d.slots[slot].draft.num_draft_tokens = wanted;
  }
  void run(StepData& d, const Ids& logits_rows, const Ids& row_slot, const Ids& before,
           const Ids& sampled) {
    push(d);
    draft_take(
        queue(),
        {.batch = batch_,
         .counts = to_device(std::vector<StepCounts>{
             {static_cast<int32_t>(row_slot.size()), static_cast<int32_t>(sampled.size()), 0, 0}}),
         .logits_rows = to_device(logits_rows),
         .row_slot = to_device(row_slot),
         .before = to_device(before),
         .sampled = to_device(sampled),
         .max_rows = static_cast<int32_t>(sampled.size()) + 300});
    pull(d);
  }
  static Ids drafts(const StepData& d, int slot) {
    const SlotState& s = d.slots[slot];
    return Ids(s.drafts, s.drafts + s.num_draft_tokens);
  }
};

TEST_F(DraftTakeTest, EachSlotGetsItsOwn) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 5, 2);
  add_slot(d, 3, 9, 3);
  run(d, {1, 2, 4, 5, 6}, {0, 0, 0, 3, 3, 3, 3}, {3, 4, 5, 7, 8, 9, 10}, {10, 11, 20, 21, 22});
  EXPECT_EQ(drafts(d, 0), (Ids{10, 11}));
  EXPECT_EQ(drafts(d, 3), (Ids{20, 21, 22}));
  EXPECT_EQ(d.slots[3].draft.num_draft_tokens, 3);
}

TEST_F(DraftTakeTest, AnInvalidIdEndsTheDraftsOfItsSlot) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 5, 3);
  add_slot(d, 1, 7, 2);
  run(d, {0, 1, 2, 3, 4}, {0, 0, 0, 1, 1}, {4, 5, 6, 6, 7}, {10, -1, 12, -1, 21});
  EXPECT_EQ(drafts(d, 0), (Ids{10}));
  EXPECT_EQ(d.slots[0].draft.num_draft_tokens, 1);
  EXPECT_EQ(drafts(d, 1), Ids{});
  EXPECT_EQ(d.slots[1].draft.num_draft_tokens, 0);
}

}  // namespace
}  // namespace foretoken
