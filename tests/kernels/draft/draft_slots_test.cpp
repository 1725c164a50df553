#include "kernels/draft/draft_slots.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(DraftSlots, OutcomesOfResults) {
  SpanResult result{};
  result.num_drafted = 3;
  result.num_accepted = 1;
  result.num_committed = 2;
  const spec::Outcome outcome = outcome_of(result);
  EXPECT_EQ(outcome.drafted, 3);
  EXPECT_EQ(outcome.accepted, 1);
  EXPECT_TRUE(outcome.rejected);
  result.num_committed = 1;
  EXPECT_FALSE(outcome_of(result).rejected) << "cut behind draft 0";
}

TEST(DraftSlots, ASlotGoesOnAfterItSampled) {
  SlotState state{};
  SpanState span{};
  EXPECT_FALSE(goes_on(span, state)) << "prompt tokens are missing";
  span.num_logits = 1;
  EXPECT_TRUE(goes_on(span, state));
  span.num_scored = 1;
  EXPECT_FALSE(goes_on(span, state)) << "its row was scored alone";
  span.num_logits = 2;
  EXPECT_TRUE(goes_on(span, state));
  state.finished = static_cast<int32_t>(DeviceFinish::kStop);
  EXPECT_FALSE(goes_on(span, state));
}

TEST(DraftSlots, MostDraftsTakesTheBoundsOfTheSlot) {
  SlotState state{};
  state.len = 10;
  SlotParams params{};
  params.max_draft_tokens = 5;
  params.max_len = 100;
  EXPECT_EQ(max_draft_tokens(state, params, 8, 1000), 5);
  EXPECT_EQ(max_draft_tokens(state, params, 3, 1000), 3);
  EXPECT_EQ(max_draft_tokens(state, params, 8, 12), 3);
  params.max_len = 13;
  EXPECT_EQ(max_draft_tokens(state, params, 8, 1000), 2);
}

TEST(DraftSlots, SlotsWithAPredictionAreApart) {
  SlotParams params{};
  EXPECT_FALSE(is_predicted(params));
  params.num_prediction = 1;
  EXPECT_TRUE(is_predicted(params));
}

}  // namespace
}  // namespace foretoken
