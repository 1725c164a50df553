#pragma once
#include "device/queue.h"
#include "kernels/draft/suffix_table.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 9 for suffix decoding (Oliaro et al. 2024, arXiv 2411.04975), in two parts for the
// slots of the step's spans that draft with `drafter`.
//
// Learning, in the order of the spans: of each position p of the output whose id is known after the
// commit and that was not learnt yet ([max(prompt_len, learnt_ever), known_after)), the table
// takes in that t[p] followed the n tokens before it, for n = max_depth, its half, quarter and
// eighth, under the slot's cache_salt and adapter_number. draft.computed becomes known_after. A
// sequence of which nothing was learnt before moves the table's clock by one.
//
// Proposing, as kernels/draft/ngram.h says which slots and at most how many drafts (none where
// num_draft_tokens is 0). Where the table surely knows what follows the longest piece of text
// (suffix_table::is_sure) the slot's found_by becomes 1 + drafter, otherwise 0, and as many drafts
// are made as the plan grants, whatever choose_lengths chose. Of three sources the one with the
// longest suffix in common with the text:
//   the slot's prediction, at least 2 tokens; it goes before the others when it is as long
//   the table: the longest n that it holds; it goes before the own text when it is as long
//   the own text, from the least n to max_depth tokens, as ngram finds it
// The latter two give at most max_factor * (tokens of the suffix) drafts. The table's are made one
// by one, each the likeliest behind the longest n that is held, drafts included, for as long as the
// product of their chances is at least min_chance.
struct SuffixArgs {
  static constexpr Op kOp = Op::kSuffix;
  const void* plan;
  PlanLimits limits;
  BatchState batch;
  const SpanState* spans;  // of the step
  suffix_table::Table table;
  int32_t num_draft_tokens;  // at most kMaxDraftTokens
  int32_t drafter;
  int32_t max_depth;  // at most kMaxDepth of suffix_table.h
  float max_factor;
  int32_t min_chance;     // in 1/65535
  int32_t draft_max_len;  // as choose_lengths has it
};

void suffix(Queue& queue, const SuffixArgs& args);

}  // namespace foretoken
