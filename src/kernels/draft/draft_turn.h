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

FT_HD inline void choose_draft_of(const ChooseDraftArgs& a, const SpanPlan& span) {
  SlotState& state = a.batch.slots[span.slot];
  const SlotParams& params = a.batch.params[span.slot];
  if (!is_lookup(params, a.drafter) || state.drafted_by != a.drafter) return;
  if (drafts_stand(a, span)) return;
  state.num_draft_tokens = 0;
  state.draft.num_draft_tokens = 0;
}

}  // namespace foretoken
