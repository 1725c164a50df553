#include "kernels/step/prepare.h"

#include <algorithm>

#include "kernels/branches.h"
#include "kernels/cpu/op_table.h"
#include "kernels/logits_row.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

// Rows from `begin` to at most `end`.
struct Lane {
  int begin;
  int end;
  int num_rows = 0;
};

// The rows that a span gets, placed after those already given out.
SpanState place_span(const PrepareArgs& a, const SpanPlan& plan, const Lane& lane,
                     const StepCounts& used) {
  SpanState span{plan.slot, lane.begin + lane.num_rows, 0, used.num_logits_rows, 0, 0, 0};
  const SlotState& state = a.batch.slots[plan.slot];
  const int known = std::min(plan.num_tokens, state.len - state.computed);
  if (state.finished != static_cast<int32_t>(DeviceFinish::kNone) || known <= 0) return span;
  const bool complete = state.computed + known == state.len;
  const bool pools =
      a.batch.params[plan.slot].pooling != static_cast<int32_t>(DevicePooling::kNone);
  const bool samples = complete && !pools;
  const int drafts =
      samples ? std::clamp(std::min(state.num_draft_tokens, plan.max_verified), 0, kMaxDraftTokens)
              : 0;
  const int scored = plan.wants_all != 0 && !pools ? known - (complete ? 1 : 0) : 0;
  const int logits = scored + (samples ? drafts + 1 : 0);
  const bool fits = span.row_begin + known + drafts <= lane.end &&
                    used.num_logits_rows + logits <= a.max_logits_rows &&
                    (state.computed + known + drafts - 1) / a.batch.block_size < a.batch.max_blocks;
  if (!fits) return span;
  span.num_rows = known + drafts;
  span.num_logits = logits;
  span.num_draft_tokens = drafts;
  span.num_scored = scored;
  return span;
}

void write_rows(const PrepareArgs& a, const SpanState& span) {
  const StepTensors& t = a.tensors;
  const SlotState& state = a.batch.slots[span.slot];
  const auto place = [&](const int32_t* tables, int position) {
    const int32_t block =
        tables[int64_t{span.slot} * a.batch.max_blocks + position / a.batch.block_size];
    return block * a.batch.block_size + position % a.batch.block_size;
  };
  for (int i = 0; i < span.num_rows; ++i) {
    const int row = span.row_begin + i;
    const int position = state.computed + i;
    t.token_ids[row] = history_id(a.batch, span.slot, position);
    t.positions[row] = position;
    t.row_slot[row] = span.slot;
    t.kv_slot[row] = place(a.batch.block_tables, position);
    if (a.batch.window_tables != nullptr) {
      t.window_slot[row] = place(a.batch.window_tables, position);
    }
  }
  for (int i = 0; i < span.num_logits; ++i) {
    t.logits_rows[span.logits_begin + i] = span.row_begin + span.num_rows - span.num_logits + i;
  }
}

void pad_rows(const PrepareArgs& a, const Lane& lane) {
  const StepTensors& t = a.tensors;
  for (int row = lane.begin + lane.num_rows; row < lane.end; ++row) {
    t.token_ids[row] = 0;
    t.positions[row] = 0;
    t.row_slot[row] = a.batch.num_slots;
    t.kv_slot[row] = 0;
    if (a.batch.window_tables != nullptr) t.window_slot[row] = 0;
  }
}

// The plan of a branch that follows the slot of span `leader`, or no rows.
SpanPlan branch_plan(const PrepareArgs& a, const PlanView& plan, int32_t branch) {
  const int32_t leader = a.batch.slots[branch].branch.leader;
  for (int i = 0; i < plan.header->num_spans; ++i) {
    if (plan.spans[i].slot != leader) continue;
    SpanPlan result{};
    result.slot = branch;
    result.num_tokens = a.tensors.spans[i].num_draft_tokens > 0 ? 1 : 0;
    result.max_verified = plan.spans[i].max_verified;
    return result;
  }
  return {};
}

// Rows of branches, behind all spans.
void place_branches(const PrepareArgs& a, const PlanView& plan, Lane& lane, StepCounts& used) {
  const int32_t most = std::min(plan.header->num_branches, a.batch.num_branches);
  for (int32_t b = first_branch(a.batch); b < a.batch.num_slots; ++b) {
    if (used.num_branches == most) return;
    if (!follows(a.batch, b)) continue;
    const SpanState span = place_span(a, branch_plan(a, plan, b), lane, used);
    if (span.num_draft_tokens == 0) continue;
    a.tensors.spans[used.num_spans + used.num_branches++] = span;
    write_rows(a, span);
    lane.num_rows += span.num_rows;
    used.num_rows += span.num_rows;
    used.num_logits_rows += span.num_logits;
  }
}

}  // namespace

void prepare(const void* args, CpuPool&) {
  const auto& a = *static_cast<const PrepareArgs*>(args);
  const StepTensors& t = a.tensors;
  const PlanView plan = plan_view(a.plan, a.limits);
  const bool splits = a.lane_rows > 0;
  Lane lanes[] = {{0, splits ? a.lane_rows : a.max_rows},
                  {a.lane_offset, a.lane_offset + a.lane_rows}};
  StepCounts used{0, 0, plan.header->num_spans, 0};
  for (int i = 0; i < plan.header->num_spans; ++i) {
    Lane& lane = lanes[splits && i >= plan.header->lane_spans ? 1 : 0];
    const SpanState span = place_span(a, plan.spans[i], lane, used);
    t.spans[i] = span;
    write_rows(a, span);
    lane.num_rows += span.num_rows;
    used.num_rows += span.num_rows;
    used.num_logits_rows += span.num_logits;
  }
  place_branches(a, plan, lanes[splits ? 1 : 0], used);
  t.counts[0] = used;
  pad_rows(a, lanes[0]);
  if (!splits) return;
  pad_rows(a, lanes[1]);
  for (int i = 0; i < 2; ++i) t.counts[1 + i] = {lanes[i].num_rows, 0, 0, 0};
}

}  // namespace foretoken::cpu
