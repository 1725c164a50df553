#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 9, behind the proposal of a look-up: whether its drafts stand, for the slot of each
// span of the plan that has `drafter` before another one in its list (kernels/draft_lists.h) and
// whose last turn was its own. They do where there are some and spec::lookup_stands
// (spec/draft_choice.h) prefers them to the span's num_draft_tokens, at most the slot's
// max_draft_tokens, of SlotParams::drafter; where that one is a look-up too, of which nobody knows
// whether it finds anything, and behind a long piece of text (SlotState::found_by), they always
// stand. Elsewhere num_draft_tokens and
// draft.num_draft_tokens become 0, and the next one of the list has its turn. Drafts that stand
// wait where spec::lookup_stands prefers as many of a look-up of the list that comes later in the
// step, has a limit and is one of `rivals`, unless the slot has a grammar: where that one finds
// none, which its own turn tells, they are verified.
struct ChooseDraftArgs {
  static constexpr Op kOp = Op::kChooseDraft;
  const void* plan;
  PlanLimits limits;
  BatchState batch;
  int32_t drafter;
  int32_t lookups;  // bit d: the engine's drafter d is a look-up
  int32_t rivals;   // bit d: look-up d proposes later in this step
};

void choose_draft(Queue& queue, const ChooseDraftArgs& args);

}  // namespace foretoken
