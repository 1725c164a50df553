#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 9a: how many drafts each slot gets next, 0 .. its span's num_draft_tokens, after its
// acceptance statistics have taken in the step's results. For each span of the plan whose slot
// drafts with `drafter` (spec/acceptance_rates.h and
// spec/length_choice.h have the arithmetic):
//  - rates: a verification of d > 0 drafts, a accepted, moves rates[i] for i <= min(a, d - 1)
//    towards 65535 (i < a) or 0 (i == a) by 1 / min(num_rated + 4, 32) of the distance, rounded
//    towards the old value; num_rated += 1. Where the commit was cut, so that no id took the place
//    of draft a, rates[a] stays. With a == d the rates at and beyond d, reached but not offered,
//    rise by 1 / min(num_rated + 4, 64) of the distance to the rate before them where that is
//    higher. The drafter's prior keeps such rates over all its slots, those of one step taken
//    together, by 1 / min(num_rated + 4, 64) a verification; a slot whose num_rated is 0 starts
//    from them, or from 0.7 where there are none. Slots with a prediction start from 0.7 and leave
//    the prior alone.
//  - the most that it can use: min(num_draft_tokens, its max_draft_tokens, max_len - len - 1,
//    draft_max_len - len + 1); 0 when it has ended, pools or has not sampled. A slot at 0 drafts
//    for 64 tokens or more gets at least one where it can use one (probe). Where the slots of the
//    drafter had none for 64 tokens together, the one of them that goes longest without gets one
//    too, the first of equals: no sequence may live long enough for a probe of its own. What was
//    seen before a probe counts no more than 4 verifications.
//  - `adaptive`: over all those slots the drafts are chosen that maximise
//    (slots + sum of survival) / (row_ns[slots + drafts] + draft_ns), `slots` counting those of the
//    whole plan that sampled and go on, whatever their drafter; survival of draft i = product
//    of rates up to i, quantised to 256 levels; drafts of a level are taken together, from the
//    highest down; the fewest of equals. Otherwise each gets the most that it can use.
// draft.num_draft_tokens of those slots is set. All in integers, so that the choice depends on
// device state and plan alone.
struct ChooseLengthsArgs {
  static constexpr Op kOp = Op::kChooseLengths;
  const void* plan;
  PlanLimits limits;
  BatchState batch;
  const SpanState* spans;  // of the step
  const void* result;      // device copy of the result entry, after commit
  ResultLimits result_limits;
  const int32_t*
      row_ns;          // [num_row_ns] time of a target step with so many rows; null: not adaptive
  int32_t num_row_ns;  // more rows take the time of the last entry
  int32_t draft_ns;    // time of this step's draft passes, spent whatever is chosen
  int32_t drafter;
  int32_t draft_max_len;
  int32_t max_draft_tokens = kMaxDraftTokens;  // of the drafter; rates beyond are left alone
};

void choose_lengths(Queue& queue, const ChooseLengthsArgs& args);

}  // namespace foretoken
