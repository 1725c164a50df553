#include "engine/plan_encoder.h"

#include <algorithm>

#include "base/check.h"
#include "engine/request_state.h"

namespace foretoken {

void encode_plan(const StepPlan& plan, const BlockPool& blocks, const PlanLimits& limits,
                 const PlanView& entry) {
  FT_CHECK(static_cast<int>(plan.spans.size()) <= limits.max_spans);
  FT_CHECK(static_cast<int>(plan.blocks.size()) <= limits.max_block_updates);
  FT_CHECK(plan.num_new_ids <= limits.max_tokens);
  int num_inits = 0;
  int num_ids = 0;
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const Span& span = plan.spans[i];
    const Sequence& sequence = *span.sequence;
    SpanPlan& out = entry.spans[i];
    out = {sequence.slot, span.num_tokens, span.max_drafts, 0, 0, 0, 0};
    if (span.first_new_id >= 0) {
      out.num_new_ids = span.num_tokens;
      out.token_offset = num_ids;
      out.write_position = span.first_new_id;
      std::copy_n(sequence.tokens.begin() + span.first_new_id, span.num_tokens,
                  entry.tokens + num_ids);
      num_ids += span.num_tokens;
    }
    if (span.is_first) {
      const auto& request = *static_cast<const RequestState*>(sequence.owner);
      entry.inits[num_inits++] = {sequence.slot, sequence.known_len(), span.num_hit_tokens, 0,
                                  request.params};
    }
  }
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    const BlockAssignment& block = plan.blocks[i];
    entry.block_updates[i] = {block.slot, block.index, block.block,
                              block.fresh ? blocks.epoch(block.block) : 0u, 0};
  }
  *entry.header = {plan.step, static_cast<int32_t>(plan.spans.size()),
                   num_inits, static_cast<int32_t>(plan.blocks.size()),
                   num_ids,   0};
}

}  // namespace foretoken
