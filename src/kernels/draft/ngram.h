#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 9 for prompt lookup (Saxena 2023): drafts for the slot of each span that drafts with
// `drafter`, from the sequence's own token pages. With history t[0..len): the match is the position
// j < len - 1 with the longest common suffix of t[..j] and t[..len-1], at least min_n and counted
// up to max_n tokens, the largest j among equals. Draft i = t[j + 1 + i], and where that passes the
// end, the draft already made at that place (the period goes on). The number of drafts is
// min(num_draft_tokens, the slot's draft.num_draft_tokens), or 0 without a match; 0 also for
// finished slots and while prompt tokens are missing (computed != len - 1). Where the slot has a
// prediction, its place there (kernels/draft/prediction_match.h) counts when its suffix has at
// least min(min_n, 2) tokens and is no shorter than that of the match above: then the drafts are
// the ids that follow in the prediction, as many as there are, and from_prediction is 1.
//
// Example: of "a b c d a b c" with max_n 3 the suffix "a b c" is found at the beginning. Four
// drafts are "d a b c", the rest of the text; the fifth and sixth go on with the drafts themselves,
// "d a".
struct NgramArgs {
  static constexpr Op kOp = Op::kNgram;
  const void* plan;
  PlanLimits limits;
  BatchState batch;
  int32_t num_draft_tokens;  // K, at most kMaxDraftTokens
  int32_t drafter;
  int32_t min_n;
  int32_t max_n;
};

void ngram(Queue& queue, const NgramArgs& args);

}  // namespace foretoken
