#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step parts 6b and 7: verification and commit, one span at a time. spec/verify.h decides which
// drafts are accepted and which ids follow; kernels/step/commit_span.h is what both devices run.
// A span without sampling rows: computed += its rows. One whose slot pools ends with kStop, nothing
// committed, when it reaches the last prompt token. Otherwise, with logits rows 0..d behind the
// scored ones and drafts x_1..x_d:
//   by the rule `coupled` a = the largest number with x_i == sampled row i-1 for all i <= a; the
//   ids sampled at rows 0..a are committed. By the rule `synthetic` (for benchmarks: the text is
//   not the target's) a = the largest number with draw(i) < synthetic[i - 1] for all i <= a,
//   draw(i) = word 0 of Philox with counter (0, position of x_i, choice, kAcceptDraft) and the
//   slot's seed as key; x_1..x_a are committed and then the id sampled at row a. They are cut after
//   the first stop id (finish = kStop, the id is kept) or when len reaches max_len (kLength); stop
//   wins over length; a sampled -1 ends the sequence with kError, ids before it kept. The ids are
//   appended to the token pages (raising the headers' counts), len += committed, computed = len -
//   1, num_draft_tokens = 0, finished = finish. draft.computed rises to min(draft.written, len - 1)
//   where that is more, with the page headers' draft_counts, and draft.written becomes 0;
//   draft.since_draft becomes 0 when d > 0 and otherwise rises by the committed ids.
// Where branches of the slot have spans, the one of its span and theirs with the largest a takes
// the place of all, by the rule `coupled`: its ids are committed, logits_begin is its, and
// BranchState::winner says so. draft.written is that one's then. num_drafted stays the slot's own.
// The slot has no branches behind its commit.
// A slot with a grammar commits at most num_decided ids, and verifies as many drafts: what is
// behind them is rejected without being counted, and the next step has the same span again.
// results[i] tells what happened to span i; num_accepted = min(a, committed); draft_missing =
// max(0, (ids known after the step) - draft.computed), known being len, or without sampling rows
// computed.
// A span of a finished slot reports nothing committed, nothing drafted and kNone.
struct VerifyAndCommitArgs {
  static constexpr Op kOp = Op::kVerifyAndCommit;
  const void* plan;
  PlanLimits limits;
  BatchState batch;
  StepTensors tensors;
  void* result;  // device copy of the result entry (result_view)
  ResultLimits result_limits;
  const uint32_t* synthetic;  // [kMaxDraftTokens] chance of draft i given those before, in 2^-32;
                              // ~0 is always; null: the rule `coupled`
};

void verify_and_commit(Queue& queue, const VerifyAndCommitArgs& args);

}  // namespace foretoken
