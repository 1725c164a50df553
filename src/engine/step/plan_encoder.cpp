#include "engine/step/plan_encoder.h"

#include <algorithm>

#include "base/check.h"
#include "engine/request/request_state.h"

namespace foretoken {
namespace {

BlockUpdate block_update(const BlockAssignment& block, const BlockPool& blocks) {
  const bool restarts_page = block.fresh && !block.windowed;
  return {block.slot, block.index, block.block, restarts_page ? blocks.epoch(block.block) : 0u,
          block.windowed ? 1 : 0};
}

// A span without the ids that are written for it.
SpanPlan span_plan(const Span& span) {
  return {.slot = span.sequence->slot,
          .num_tokens = span.num_tokens,
          .max_verified = span.max_verified,
          .num_new_ids = 0,
          .token_offset = 0,
          .write_position = 0,
          .wants_all = span.wants_all ? 1 : 0,
          .num_draft_tokens = span.num_draft_tokens,
          .draft_rows = span.draft_rows,
          .num_lookup_tokens = span.num_lookup_tokens};
}

}  // namespace

void encode_plan(const StepPlan& plan, const BlockPool& blocks, const PlanLimits& limits,
                 const PlanView& entry) {
  FT_CHECK(static_cast<int>(plan.spans.size()) <= limits.max_spans);
  FT_CHECK(static_cast<int>(plan.blocks.size()) <= limits.max_block_updates);
  FT_CHECK(plan.num_new_ids <= limits.max_tokens);
  FT_CHECK(plan.num_words <= limits.max_words);
  int num_inits = 0;
  int num_ids = 0;
  int num_words = 0;
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const Span& span = plan.spans[i];
    const Sequence& sequence = *span.sequence;
    SpanPlan& out = entry.spans[i];
    out = span_plan(span);
    if (span.first_new_id >= 0) {
      out.num_new_ids = span.num_new_ids();
      out.token_offset = num_ids;
      out.write_position = span.first_new_id;
      std::copy_n(sequence.tokens.begin() + span.first_new_id, out.num_new_ids,
                  entry.tokens + num_ids);
      num_ids += out.num_new_ids;
    }
    if (span.is_first) {
      const auto& request = *static_cast<const RequestState*>(sequence.owner);
      entry.inits[num_inits++] = {sequence.slot, sequence.known_len(), span.num_hit_tokens,
                                  num_words, request.params};
      entry.inits[num_inits - 1].params.adapter = sequence.adapter_slot + 1;
      entry.inits[num_inits - 1].draft_computed = span.num_state_entries;
      std::copy(request.init_words.begin(), request.init_words.end(), entry.words + num_words);
      num_words += static_cast<int>(request.init_words.size());
    }
  }
  FT_CHECK(num_words == plan.num_words);
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    entry.block_updates[i] = block_update(plan.blocks[i], blocks);
  }
  *entry.header = {plan.step,
                   static_cast<int32_t>(plan.spans.size()),
                   num_inits,
                   static_cast<int32_t>(plan.blocks.size()),
                   num_ids,
                   num_words,
                   plan.lane_cut().num_spans,
                   plan.num_branches};
}

}  // namespace foretoken
