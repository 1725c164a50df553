#include "kernels/draft_lists.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

SlotParams listed(int32_t drafter, int32_t lookups) {
  SlotParams params{};
  params.drafter = drafter;
  params.lookups = lookups;
  return params;
}

TEST(DraftLists, ASlotIsServedByItsDrafterAndTheLookupsBeforeIt) {
  const SlotParams alone = listed(1, 0), list = listed(3, 0b101);
  EXPECT_TRUE(serves(alone, 1));
  EXPECT_FALSE(serves(alone, 0));
  for (const int32_t drafter : {0, 2, 3}) EXPECT_TRUE(serves(list, drafter)) << drafter;
  EXPECT_FALSE(serves(list, 1));
  EXPECT_TRUE(is_lookup(list, 2));
  EXPECT_FALSE(is_lookup(list, 3));
}

TEST(DraftLists, DraftsThatStandLeaveOthersNoTurn) {
  SlotState state{};
  state.drafted_by = 0;
  EXPECT_FALSE(has_other_drafts(state, listed(1, 1), 1)) << "there are none";
  state.num_draft_tokens = 2;
  EXPECT_TRUE(has_other_drafts(state, listed(1, 1), 1));
  EXPECT_FALSE(has_other_drafts(state, listed(1, 1), 0)) << "its own";
  EXPECT_FALSE(has_other_drafts(state, listed(1, 0), 1)) << "not a list";
}

TEST(DraftLists, DraftsThatWaitStandWhereNothingIsFound) {
  SlotState state{};
  state.drafted_by = 2;
  state.num_draft_tokens = kMaxDraftTokens;
  let_drafts_wait(state);
  EXPECT_EQ(state.num_draft_tokens, 0);
  EXPECT_EQ(turn_of(state), 2);
  take_turn(state, 3);
  EXPECT_EQ(turn_of(state), 3);
  SlotState found = state;
  found.num_draft_tokens = 1;
  EXPECT_FALSE(end_waiting(found));
  EXPECT_EQ(found.drafted_by, 3);
  EXPECT_TRUE(end_waiting(state));
  EXPECT_EQ(state.drafted_by, 2);
  EXPECT_EQ(state.num_draft_tokens, kMaxDraftTokens);
  EXPECT_FALSE(end_waiting(state)) << "nothing waits";
}

TEST(DraftLists, RatesAndGrantsOfEachDrafter) {
  SlotState state{};
  const SlotParams params = listed(1, 1);
  EXPECT_EQ(&rates_of(state, params, 1), static_cast<DraftRates*>(&state.draft));
  EXPECT_EQ(&rates_of(state, params, 0), &state.lookup_rates[0]);
  SpanPlan span{};
  span.num_draft_tokens = 3;
  span.num_lookup_tokens = 8;
  EXPECT_EQ(granted_drafts(span, params, 1), 3);
  EXPECT_EQ(granted_drafts(span, params, 0), 8);
}

TEST(DraftLists, ResultsAreThoseOfTheDrafterThatMadeTheDrafts) {
  SpanResult result{};
  result.num_drafted = 4;
  result.num_committed = 3;
  result.drafter = 1;
  const SlotParams list = listed(1, 1), alone = listed(2, 0);
  EXPECT_EQ(drafted_with(result, list, 1), 4);
  EXPECT_EQ(drafted_with(result, list, 0), 0);
  EXPECT_EQ(drafted_with(result, alone, 2), 4) << "only one can have made them";
  EXPECT_EQ(rested_tokens(result, list, 1), 3);
  EXPECT_EQ(rested_tokens(result, list, 0), 1) << "a step of another one is one token";
  result.num_drafted = 0;
  EXPECT_EQ(rested_tokens(result, list, 0), 3);
}

}  // namespace
}  // namespace foretoken
