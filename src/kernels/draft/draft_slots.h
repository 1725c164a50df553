#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/draft_entries.h"
#include "kernels/step_types.h"
#include "spec/acceptance_rates.h"
#include "spec/length_choice.h"

// How the arithmetic of src/spec reads the slots, spans and results of a step.

namespace foretoken {

FT_HD inline spec::Outcome outcome_of(const SpanResult& result) {
  return spec::outcome_of(result.num_drafted, result.num_accepted, result.num_committed);
}

// Whether the slot drafts by its own prediction: others tell nothing of its drafts, nor it of
// theirs.
FT_HD inline bool is_predicted(const SlotParams& params) { return params.num_prediction > 0; }

// Whether the slot has one row in the next step too: it sampled and goes on.
FT_HD inline bool goes_on(const SpanState& span, const SlotState& state) {
  return has_sampled(span) && state.finished == static_cast<int32_t>(DeviceFinish::kNone);
}

// The most drafts that a slot which goes on can use.
FT_HD inline int32_t max_draft_tokens(const SlotState& state, const SlotParams& params,
                                      int32_t limit, int32_t draft_max_len) {
  return spec::max_draft_tokens(
      {limit, params.max_draft_tokens, state.len, params.max_len, draft_max_len});
}

}  // namespace foretoken
