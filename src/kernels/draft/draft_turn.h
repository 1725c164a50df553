#pragma once
#include "base/host_device.h"
#include "kernels/draft/choose_draft.h"
#include "kernels/draft_lists.h"
#include "spec/draft_choice.h"

namespace foretoken {

// What choose_draft does with one span, for the CPU and the CUDA kernel.

FT_HD inline bool drafts_stand(const ChooseDraftArgs& a, const SpanPlan& span) {
  const SlotParams& params = a.batch.params[span.slot];
  const SlotState& state = a.batch.slots[span.slot];
  if (state.num_draft_tokens <= 0) return false;
  if ((a.lookups >> params.drafter & 1) != 0 || state.found_by == 1 + a.drafter) return true;
  const int32_t others = span.num_draft_tokens < params.max_draft_tokens ? span.num_draft_tokens
                                                                         : params.max_draft_tokens;
  return spec::lookup_stands(
      {state.lookup_rates[a.drafter], a.batch.priors[a.drafter], state.num_draft_tokens},
      {state.draft, a.batch.priors[params.drafter], others});
}

// Whether one of a.rivals, if it finds drafts, finds better ones than those that stand. As many of
// both are compared, since nobody knows how many it finds.
FT_HD inline bool has_rival(const ChooseDraftArgs& a, const SpanPlan& span) {
  const SlotParams& params = a.batch.params[span.slot];
  SlotState& state = a.batch.slots[span.slot];
  // Masks repair drafts in the turn that found them.
  if (params.grammar != 0 || state.found_by == 1 + a.drafter) return false;
  const auto at_most = [](int32_t count, int32_t most) { return count < most ? count : most; };
  for (int32_t d = a.drafter + 1; d < kMaxDrafters; ++d) {
    if ((a.rivals >> d & 1) == 0 || !serves(params, d)) continue;
    const int32_t granted = at_most(granted_drafts(span, params, d), params.max_draft_tokens);
    if (!spec::lookup_stands(
            {rates_of(state, params, a.drafter), a.batch.priors[a.drafter], state.num_draft_tokens},
            {rates_of(state, params, d), a.batch.priors[d],
             at_most(granted, state.num_draft_tokens)})) {
      return true;
    }
  }
  return false;
}

FT_HD inline void choose_draft_of(const ChooseDraftArgs& a, const SpanPlan& span) {
  SlotState& state = a.batch.slots[span.slot];
  const SlotParams& params = a.batch.params[span.slot];
  if (!serves(params, a.drafter) || turn_of(state) != a.drafter) return;
  if (end_waiting(state) || !is_lookup(params, a.drafter)) return;
  if (!drafts_stand(a, span)) {
    state.num_draft_tokens = 0;
    state.draft.num_draft_tokens = 0;
  } else if (has_rival(a, span)) {
    let_drafts_wait(state);
  }
}

}  // namespace foretoken
