#include "kernels/prepare.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/token_page.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

// The rows that a span gets, placed after those already given out.
SpanState place_span(const PrepareArgs& a, const SpanPlan& plan, const StepCounts& used) {
  SpanState span{plan.slot, used.num_rows, 0, used.num_logits_rows, 0, 0, 0};
  const SlotState& state = a.batch.slots[plan.slot];
  const int known = std::min(plan.num_tokens, state.len - state.computed);
  if (state.finished != static_cast<int32_t>(DeviceFinish::kNone) || known <= 0) return span;
  const bool complete = state.computed + known == state.len;
  const int drafts =
      complete ? std::clamp(std::min(state.num_drafts, plan.max_drafts), 0, kMaxDrafts) : 0;
  const int logits = complete ? drafts + 1 : 0;
  const bool fits = used.num_rows + known + drafts <= a.max_rows &&
                    used.num_logits_rows + logits <= a.max_logits_rows &&
                    (state.computed + known + drafts - 1) / a.batch.block_size < a.batch.max_blocks;
  if (!fits) return span;
  span.num_rows = known + drafts;
  span.num_logits = logits;
  span.num_drafts = drafts;
  return span;
}

void write_rows(const PrepareArgs& a, const SpanState& span) {
  const StepTensors& t = a.tensors;
  const SlotState& state = a.batch.slots[span.slot];
  for (int i = 0; i < span.num_rows; ++i) {
    const int row = span.row_begin + i;
    const int position = state.computed + i;
    t.token_ids[row] = position < state.len ? token_at(a.batch, span.slot, position)
                                            : state.drafts[position - state.len];
    t.positions[row] = position;
    t.row_slot[row] = span.slot;
    t.kv_slot[row] =
        block_of(a.batch, span.slot, position) * a.batch.block_size + position % a.batch.block_size;
  }
  for (int i = 0; i < span.num_logits; ++i) {
    t.logits_rows[span.logits_begin + i] = span.row_begin + span.num_rows - span.num_logits + i;
  }
}

}  // namespace

void prepare(const void* args, CpuPool&) {
  const auto& a = *static_cast<const PrepareArgs*>(args);
  const StepTensors& t = a.tensors;
  const PlanView plan = plan_view(a.plan, a.limits);
  StepCounts used{0, 0, plan.header->num_spans, 0};
  for (int i = 0; i < plan.header->num_spans; ++i) {
    const SpanState span = place_span(a, plan.spans[i], used);
    t.spans[i] = span;
    write_rows(a, span);
    used.num_rows += span.num_rows;
    used.num_logits_rows += span.num_logits;
  }
  *t.counts = used;
  for (int row = used.num_rows; row < a.max_rows; ++row) {
    t.token_ids[row] = 0;
    t.positions[row] = 0;
    t.row_slot[row] = a.batch.num_slots;
    t.kv_slot[row] = 0;
  }
}

}  // namespace foretoken::cpu
