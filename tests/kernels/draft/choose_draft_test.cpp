#include "kernels/draft/choose_draft.h"

#include <algorithm>

#include "kernels/draft_lists.h"
#include "support/step_data.h"

namespace foretoken {
namespace {

// Drafter 0 is a look-up, 1 another one and 2 a head.
class ChooseDraftTest : public StepTest {
 protected:
  static constexpr int32_t kLookups = 0b011;

  static void add_slot(StepData& d, int slot, int num_found, double lookup_rate, double head_rate) {
    d.set_sequence(slot, std::vector<int32_t>(6, 1), 5);
    d.add_span(slot, 1, kMaxDraftTokens, 4, 1);
    d.params[slot].drafter = 2;
    d.params[slot].lookups = 1;
    SlotState& state = d.slots[slot];
    state.drafted_by = 0;
    state.num_draft_tokens = num_found;
    state.draft.num_draft_tokens = 5;
    set_rates(state.lookup_rates[0], lookup_rate);
    set_rates(state.draft, head_rate);
  }
  static void set_rates(DraftRates& rates, double rate) {
    rates.num_rated = 10;
    std::fill_n(rates.rates, kMaxDraftTokens, static_cast<uint16_t>(rate * 65535));
  }
  void run(StepData& d, int32_t drafter = 0, int32_t rivals = 0) {
    push(d);
    choose_draft(queue(), {.plan = plan_,
                           .limits = sizes_.limits,
                           .batch = batch_,
                           .drafter = drafter,
                           .lookups = kLookups,
                           .rivals = rivals});
    pull(d);
  }
};

TEST_F(ChooseDraftTest, TheBetterRateStands) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 4, 0.9, 0.3);
  add_slot(d, 1, 4, 0.3, 0.9);
  add_slot(d, 2, 0, 0.9, 0.3);
  add_slot(d, 3, 4, 0.3, 0.9);
  d.spans[3].num_draft_tokens = 0;  // the head rests
  run(d);
  EXPECT_EQ(d.slots[0].num_draft_tokens, 4);
  EXPECT_EQ(d.slots[0].draft.num_draft_tokens, 5);
  for (const int slot : {1, 2}) {
    EXPECT_EQ(d.slots[slot].num_draft_tokens, 0) << slot;
    EXPECT_EQ(d.slots[slot].draft.num_draft_tokens, 0) << slot;
  }
  EXPECT_EQ(d.slots[3].num_draft_tokens, 4);
}

TEST_F(ChooseDraftTest, OthersAreLeftAlone) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 4, 0.3, 0.9);
  d.params[0].lookups = 0;  // not in its list
  add_slot(d, 1, 4, 0.3, 0.9);
  d.slots[1].drafted_by = 2;  // not its drafts
  add_slot(d, 2, 4, 0.3, 0.9);
  d.params[2].drafter = 1;  // a look-up before a look-up: the order decides
  run(d);
  for (const int slot : {0, 1, 2}) EXPECT_EQ(d.slots[slot].num_draft_tokens, 4) << slot;
}

TEST_F(ChooseDraftTest, BehindALongPieceTheyStand) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 4, 0.3, 0.9);
  add_slot(d, 1, 4, 0.3, 0.9);
  d.slots[0].found_by = 1;
  d.slots[1].found_by = 2;  // another one did
  run(d);
  EXPECT_EQ(d.slots[0].num_draft_tokens, 4);
  EXPECT_EQ(d.slots[1].num_draft_tokens, 0);
}

// Look-up 0, whose drafts are worse than those of look-up 1.
void make_rival(StepData& d, int slot) {
  d.params[slot].lookups = 0b011;
  d.spans[slot].num_lookup_tokens = 4;
  d.slots[slot].drafts[0] = 100 + slot;
  d.slots[slot].lookup_rates[1] = d.slots[slot].lookup_rates[0];
  std::fill_n(d.slots[slot].lookup_rates[1].rates, kMaxDraftTokens, uint16_t{60000});
}

// Look-up 1 is the slot's last one or stands before the head.
TEST_F(ChooseDraftTest, DraftsWaitForABetterLookup) {
  StepData d{StepSizes{}};
  for (const int slot : {0, 1}) {
    add_slot(d, slot, 4, 0.5, 0.1);
    make_rival(d, slot);
  }
  d.params[1].drafter = 1;
  d.params[1].lookups = 0b001;
  set_rates(d.slots[1].draft, 0.9);
  run(d, 0, 0b010);
  for (const int slot : {0, 1}) {
    EXPECT_EQ(d.slots[slot].num_draft_tokens, 0) << slot;
    EXPECT_FALSE(has_other_drafts(d.slots[slot], d.params[slot], 1)) << slot;
    take_turn(d.slots[slot], 1);
  }
  d.slots[0].num_draft_tokens = 2;  // it found some, and none for slot 1
  run(d, 1);
  EXPECT_EQ(d.slots[0].num_draft_tokens, 2);
  EXPECT_EQ(d.slots[0].drafted_by, 1);
  EXPECT_EQ(d.slots[1].num_draft_tokens, 4);
  EXPECT_EQ(d.slots[1].drafted_by, 0);
  EXPECT_EQ(d.slots[1].drafts[0], 101);
}

TEST_F(ChooseDraftTest, NobodyWaitsForAWorseOrForeignLookup) {
  StepData d{StepSizes{}};
  for (int slot = 0; slot < 4; ++slot) {
    add_slot(d, slot, 4, 0.5, 0.1);
    make_rival(d, slot);
  }
  set_rates(d.slots[0].lookup_rates[1], 0.4);
  d.slots[1].found_by = 1;
  d.params[2].grammar = 7;
  d.params[3].lookups = 0b001;
  run(d, 0, 0b010);
  for (int slot = 0; slot < 4; ++slot) {
    EXPECT_EQ(d.slots[slot].num_draft_tokens, 4) << slot;
    EXPECT_TRUE(has_other_drafts(d.slots[slot], d.params[slot], 2)) << slot;
  }
}

TEST_F(ChooseDraftTest, NobodyWaitsForOneThatProposesNothing) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 4, 0.5, 0.1);
  add_slot(d, 1, 4, 0.5, 0.1);
  for (const int slot : {0, 1}) make_rival(d, slot);
  run(d);  // it is not in the step
  EXPECT_EQ(d.slots[0].num_draft_tokens, 4);
  d.spans[1].num_lookup_tokens = 0;
  run(d, 0, 0b010);
  EXPECT_EQ(d.slots[1].num_draft_tokens, 4) << "it has no limit";
}

TEST_F(ChooseDraftTest, TheRequestBoundsTheOther) {
  StepData d{StepSizes{}};
  add_slot(d, 0, 1, 0.5, 0.6);
  add_slot(d, 1, 1, 0.5, 0.4);
  d.params[0].max_draft_tokens = d.params[1].max_draft_tokens = 1;
  run(d);
  EXPECT_EQ(d.slots[0].num_draft_tokens, 0);
  EXPECT_EQ(d.slots[1].num_draft_tokens, 1) << "four of the other's would be worth more";
}

}  // namespace
}  // namespace foretoken
