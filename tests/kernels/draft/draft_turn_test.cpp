#include "kernels/draft/draft_turn.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

// One slot whose list is the look-ups 0 and 1 and the head 2.
struct TurnSlot {
  SlotParams params{};
  SlotState state{};
  std::vector<DraftRates> priors = std::vector<DraftRates>(kMaxDrafters);
  SpanPlan span{};

  TurnSlot() {
    params.drafter = 2;
    params.lookups = 0b011;
    params.max_draft_tokens = kMaxDraftTokens;
    state.num_draft_tokens = state.draft.num_draft_tokens = 3;
    span.num_draft_tokens = 3;
  }
  ChooseDraftArgs args(int32_t drafter) {
    BatchState batch{};
    batch.params = &params;
    batch.slots = &state;
    batch.priors = priors.data();
    return {nullptr, {}, batch, drafter, 0b011, 0};
  }
};

TEST(DraftTurn, UnknownRatesComeFromThePriorOfEach) {
  TurnSlot slot;
  for (DraftRates* prior : {&slot.priors[0], &slot.priors[2]}) prior->num_rated = 20;
  std::fill_n(slot.priors[0].rates, kMaxDraftTokens, uint16_t{20000});
  std::fill_n(slot.priors[2].rates, kMaxDraftTokens, uint16_t{40000});
  EXPECT_FALSE(drafts_stand(slot.args(0), slot.span));
  std::swap(slot.priors[0], slot.priors[2]);
  EXPECT_TRUE(drafts_stand(slot.args(0), slot.span));
}

TEST(DraftTurn, TheNextOneGetsItsTurnWhereDraftsDoNotStand) {
  TurnSlot slot;
  slot.state.num_draft_tokens = 0;
  choose_draft_of(slot.args(0), slot.span);
  EXPECT_EQ(slot.state.draft.num_draft_tokens, 0);
  EXPECT_FALSE(has_other_drafts(slot.state, slot.params, 1));
  slot.state.num_draft_tokens = 3;
  choose_draft_of(slot.args(1), slot.span);
  EXPECT_EQ(slot.state.num_draft_tokens, 3) << "they are drafter 0's";
  EXPECT_TRUE(has_other_drafts(slot.state, slot.params, 1));
}

}  // namespace
}  // namespace foretoken
