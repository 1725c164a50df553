#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/branches.h"
#include "kernels/draft_entries.h"
#include "kernels/draft_lists.h"
#include "kernels/step/verify_and_commit.h"
#include "kernels/step_types.h"
#include "spec/acceptance_rates.h"
#include "spec/verify.h"

// What verify_and_commit does with one span, for the CPU and the CUDA kernel. Which drafts hold is
// decided in spec/verify.h.

namespace foretoken {

// Drafts of the span as they are decided over, and the ids sampled from the row before the first
// on.
FT_HD inline spec::Verification verification_of(const VerifyAndCommitArgs& a,
                                                const SpanState& span) {
  const SlotState& state = a.batch.slots[span.slot];
  return {state.drafts, a.tensors.sampled + span.logits_begin + span.num_scored,
          num_verified(span, a.batch.params[span.slot], state)};
}

// A span of a slot or of one of its branches, and how many of its drafts are accepted.
struct AcceptedSpan {
  const SpanState* span;
  int32_t accepted;
};

// Of the span and those of its branches the one with the most accepted drafts, the first of equals.
// All of them are prefixes of one text, as rows of one position sample with the same noise. The
// branches that were looked at are counted in `result`.
FT_HD inline AcceptedSpan longest_accepted(const VerifyAndCommitArgs& a, const SpanState& span,
                                           const spec::AcceptanceRule& rule, SpanResult& result) {
  const spec::Verification own = verification_of(a, span);
  AcceptedSpan best{&span, spec::count_accepted(own, rule)};
  if (rule.synthetic != nullptr || span.num_scored > 0) return best;
  const SpanState* branches = a.tensors.spans + a.tensors.counts->num_spans;
  for (int32_t i = 0; i < a.tensors.counts->num_branches; ++i) {
    if (text_slot(a.batch, branches[i].slot) != span.slot) continue;
    ++result.num_branches;
    spec::Verification other = verification_of(a, branches[i]);
    if (other.num_draft_tokens > own.num_draft_tokens) {
      other.num_draft_tokens = own.num_draft_tokens;
    }
    const int32_t accepted = spec::count_accepted(other, rule);
    if (accepted > best.accepted) best = {branches + i, accepted};
  }
  return best;
}

// Remembers whose entries the new tokens have. The state is as before the commit.
FT_HD inline void note_winner(SlotState& state, const VerifyAndCommitArgs& a, const SpanState& span,
                              const SpanState& winner) {
  state.branch.stamp = 0;
  state.branch.winner = winner.slot == span.slot ? 0 : winner.slot;
  if (state.branch.winner == 0) return;
  state.branch.winner_begin = state.len - 1;
  state.draft.written = a.batch.slots[winner.slot].draft.written;
}

// Ids that the span may commit at most.
FT_HD inline int32_t max_committed(const VerifyAndCommitArgs& a, const SpanState& span,
                                   int32_t num_accepted) {
  const int32_t accepted_and_next = num_accepted + 1;
  const int32_t decided = num_decided(span, a.batch.params[span.slot], a.batch.slots[span.slot]);
  return accepted_and_next < decided ? accepted_and_next : decided;
}

// Entries that the drafter wrote for drafts which turned out right stay exact.
FT_HD inline void keep_entries(const BatchState& batch, int32_t slot) {
  const SlotState& state = batch.slots[slot];
  DraftState& draft = batch.slots[slot].draft;
  const int32_t exact = draft.written < state.len - 1 ? draft.written : state.len - 1;
  if (exact > draft.computed) {
    raise_draft_counts(batch, slot, batch.params[slot].drafter, draft.computed, exact);
    draft.computed = exact;
  }
  draft.written = 0;
}

// Tokens without verified drafts, of each drafter that drafts for the slot.
FT_HD inline void count_rests(const BatchState& batch, int32_t slot, const SpanResult& result) {
  const SlotParams& params = batch.params[slot];
  for (int32_t d = 0; d < kMaxDrafters; ++d) {
    if (!serves(params, d)) continue;
    DraftRates& rates = rates_of(batch.slots[slot], params, d);
    rates.since_draft = spec::since_draft_after(rates.since_draft, drafted_with(result, params, d),
                                                rested_tokens(result, params, d));
  }
}

// Of a result before its span is committed; its ids and drafts stay as they are.
FT_HD inline void clear_counts(SpanResult& result) {
  result.num_committed = 0;
  result.num_drafted = 0;
  result.num_accepted = 0;
  result.finish = static_cast<int32_t>(DeviceFinish::kNone);
  result.from_prediction = 0;
  result.drafter = 0;
  result.found_by = 0;
  result.num_branches = 0;
  result.winner = 0;
  result.num_by_branch = 0;
}

// A span that sampled: verifies its drafts and advances its slot. `result` has the slot; the
// committed ids stand there afterwards, for the caller to write to the token pages at the positions
// before the slot's new length.
FT_HD inline void commit_sampled(const VerifyAndCommitArgs& a, const SpanState& span,
                                 SpanResult& result) {
  SlotState& state = a.batch.slots[span.slot];
  const SlotParams& params = a.batch.params[span.slot];
  const spec::AcceptanceRule rule{a.synthetic, params.seed, params.choice, state.len};
  const spec::Verification own = verification_of(a, span);
  const AcceptedSpan best = longest_accepted(a, span, rule, result);
  const spec::Verification v = verification_of(a, *best.span);
  const int32_t accepted = best.accepted;
  const spec::Appended appended =
      spec::append_accepted(v, accepted, max_committed(a, span, accepted), state.len,
                            {params.stop_ids, params.num_stop_ids, params.max_len}, result.ids);
  result.num_committed = appended.num_ids;
  result.num_drafted = own.num_draft_tokens;
  result.num_accepted = accepted < appended.num_ids ? accepted : appended.num_ids;
  if (best.span != &span) {
    const int32_t without = spec::count_accepted(own, rule);
    result.winner = 1 + best.span->slot - first_branch(a.batch);
    result.num_by_branch = without < result.num_accepted ? result.num_accepted - without : 0;
    result.logits_begin = best.span->logits_begin;
  }
  result.from_prediction = state.from_prediction;
  result.drafter = params.lookups != 0 ? state.drafted_by : params.drafter;
  result.found_by = state.found_by;
  state.found_by = 0;
  result.finish = static_cast<int32_t>(appended.finish);
  for (int32_t i = 0; i < own.num_draft_tokens; ++i) {
    result.drafts[i] = i < v.num_draft_tokens ? v.drafts[i] : own.drafts[i];
  }
  note_winner(state, a, span, *best.span);
  state.len += appended.num_ids;
  state.computed = state.len - 1;
  state.num_draft_tokens = 0;
  state.finished = result.finish;
  keep_entries(a.batch, span.slot);
  count_rests(a.batch, span.slot, result);
}

// A span without a sampling row. One that pools ends with its last prompt token.
FT_HD inline void advance_prompt(const BatchState& batch, const SpanState& span,
                                 SpanResult& result) {
  SlotState& state = batch.slots[span.slot];
  state.computed += span.num_rows;
  const bool pools = batch.params[span.slot].pooling != static_cast<int32_t>(DevicePooling::kNone);
  if (!pools || span.num_rows == 0 || state.computed < state.len) return;
  state.finished = static_cast<int32_t>(DeviceFinish::kStop);
  result.finish = state.finished;
}

// Either of them, and what a span reports in any case. `result` is zero before, but for its ids and
// drafts.
FT_HD inline void commit_span(const VerifyAndCommitArgs& a, const SpanState& span,
                              SpanResult& result) {
  result.slot = span.slot;
  result.logits_begin = span.logits_begin;
  result.num_scored = span.num_scored;
  if (has_sampled(span)) {
    commit_sampled(a, span, result);
  } else {
    advance_prompt(a.batch, span, result);
  }
  const SlotState& state = a.batch.slots[span.slot];
  const int32_t missing = known_after(span, state) - state.draft.computed;
  result.draft_missing = missing > 0 ? missing : 0;
}

}  // namespace foretoken
