#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/step_types.h"

namespace foretoken {

// Lists of drafters. A slot's list is the look-ups in SlotParams::lookups, which find drafts for
// some texts only, and SlotParams::drafter behind them. They have their turns in that order at the
// end of a step; from the first turn whose drafts stand (kernels/draft/choose_draft.h) the others
// have nothing to propose. Drafts of a look-up may wait for those of a better one:
// SlotState::drafts keeps them, and SlotState::drafted_by holds, beside whose turn was last, whose
// drafts wait and how many, until that one found some or did not.

FT_HD inline bool is_lookup(const SlotParams& params, int32_t drafter) {
  return (params.lookups >> drafter & 1) != 0;
}

// Whether the slot drafts with the drafter, alone or as one of a list.
FT_HD inline bool serves(const SlotParams& params, int32_t drafter) {
  return params.drafter == drafter || is_lookup(params, drafter);
}

// Whose turn was last.
FT_HD inline int32_t turn_of(const SlotState& state) { return state.drafted_by & 0xff; }

FT_HD inline void take_turn(SlotState& state, int32_t drafter) {
  state.drafted_by = (state.drafted_by & ~0xff) | drafter;
}

// The drafts of the one whose turn it is wait: another one may find better ones.
FT_HD inline void let_drafts_wait(SlotState& state) {
  const int32_t by = turn_of(state);
  state.drafted_by = by | (by + 1) << 8 | state.num_draft_tokens << 16;
  state.num_draft_tokens = 0;
}

// Ends the waiting: what waited stands where nothing was found, which `true` says.
FT_HD inline bool end_waiting(SlotState& state) {
  const int32_t waiting = state.drafted_by >> 8 & 0xff;
  const int32_t count = state.drafted_by >> 16;
  state.drafted_by = turn_of(state);
  if (waiting == 0 || state.num_draft_tokens > 0) return false;
  state.drafted_by = waiting - 1;
  state.num_draft_tokens = count;
  return true;
}

// Whether drafts of another drafter stand, so that this one has no turn.
FT_HD inline bool has_other_drafts(const SlotState& state, const SlotParams& params,
                                   int32_t drafter) {
  return params.lookups != 0 && state.num_draft_tokens > 0 && turn_of(state) != drafter;
}

// Whether the drafter is to propose for the slot.
FT_HD inline bool has_turn(const SlotState& state, const SlotParams& params, int32_t drafter) {
  return serves(params, drafter) && !has_other_drafts(state, params, drafter);
}

// Whether a look-up may propose for the slot: its prompt is computed, and it goes on.
FT_HD inline bool is_decoding(const SlotState& state) {
  return state.finished == static_cast<int32_t>(DeviceFinish::kNone) &&
         state.computed == state.len - 1;
}

// How many drafts a look-up that was granted `granted` may propose for the slot; 0 where the
// sequence has ended or its prompt is not computed.
FT_HD inline int32_t lookup_drafts(const SlotState& state, int32_t granted) {
  const int32_t wanted =
      granted < state.draft.num_draft_tokens ? granted : state.draft.num_draft_tokens;
  return is_decoding(state) && wanted > 0 ? wanted : 0;
}

// What is known of a drafter that serves the slot.
FT_HD inline DraftRates& rates_of(SlotState& state, const SlotParams& params, int32_t drafter) {
  return params.drafter == drafter ? state.draft : state.lookup_rates[drafter];
}

// Leading ids that a drafter which learns has taken in since its slot was filled; where it is the
// slot's last one it has no entries, whose number stands there otherwise.
FT_HD inline int32_t& learnt_of(SlotState& state, const SlotParams& params, int32_t drafter) {
  return params.drafter == drafter ? state.draft.computed : state.learnt;
}

// The same, and what was taken in before the sequence was preempted; 0: nothing.
FT_HD inline int32_t learnt_ever(SlotState& state, const SlotParams& params, int32_t drafter) {
  const int32_t since = learnt_of(state, params, drafter);
  return since > state.learnt ? since : state.learnt;
}

// SlotState::learnt of a slot that is filled: a sequence that comes with output had that learnt
// when it was committed.
FT_HD inline int32_t learnt_before(const SlotInit& init) {
  return init.len > init.params.prompt_len ? init.len : 0;
}

// Most drafts that the plan lets a drafter of the span's slot propose.
FT_HD inline int32_t granted_drafts(const SpanPlan& span, const SlotParams& params,
                                    int32_t drafter) {
  return params.drafter == drafter ? span.num_draft_tokens : span.num_lookup_tokens;
}

// Verified drafts of a drafter that serves the slot of the result.
FT_HD inline int32_t drafted_with(const SpanResult& result, const SlotParams& params,
                                  int32_t drafter) {
  return params.lookups == 0 || result.drafter == drafter ? result.num_drafted : 0;
}

// Tokens that were committed without the drafter's drafts. A step that verified another one's is
// one of them: it tells as much of this drafter as one token does.
FT_HD inline int32_t rested_tokens(const SpanResult& result, const SlotParams& params,
                                   int32_t drafter) {
  const bool of_others = result.num_drafted > 0 && drafted_with(result, params, drafter) == 0;
  return of_others && result.num_committed > 0 ? 1 : result.num_committed;
}

}  // namespace foretoken
