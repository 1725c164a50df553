#include "draft/draft_passes.h"

#include <algorithm>

#include "kernels/draft/branch_drafts.h"

namespace foretoken {

DraftPasses::DraftPasses(Device& device, int32_t max_rows, int32_t max_spans)
    : max_rows_(std::max(max_rows, max_spans)),
      max_spans_(max_spans),
      arena_(device, MemoryKind::kDevice) {}

Status DraftPasses::take(const PassRules& rules) {
  rules_ = rules;
  for (DraftTensors& tensors : tensors_) FT_RETURN_IF_ERROR(take_tensors(&tensors));
  return {};
}

Status DraftPasses::take_tensors(DraftTensors* tensors) {
  const auto rows = static_cast<size_t>(max_rows_);
  const char* what = "a drafter's rows";
  FT_ASSIGN_OR_RETURN(tensors->rows.counts, arena_.take_array<StepCounts>(1, what));
  for (int32_t** ids : {&tensors->rows.token_ids, &tensors->rows.positions, &tensors->rows.row_slot,
                        &tensors->rows.kv_slot, &tensors->rows.logits_rows, &tensors->rows.sampled,
                        &tensors->source}) {
    FT_ASSIGN_OR_RETURN(*ids, arena_.take_array<int32_t>(rows, what));
  }
  if (rules_.tells_seen) {
    FT_ASSIGN_OR_RETURN(tensors->seen, arena_.take_array<int32_t>(rows, what));
  }
  if (!rules_.branches) return {};
  FT_ASSIGN_OR_RETURN(tensors->slots, arena_.take_array<int32_t>(rows, what));
  FT_ASSIGN_OR_RETURN(tensors->alternatives,
                      arena_.take_array<DraftAlternative>(rows * (kDraftAlternatives + 1), what));
  return {};
}

void DraftPasses::enqueue_first(Queue& queue, const DraftStep& step,
                                const DraftShape& shape) const {
  draft_rows(queue, {.plan = step.plan,
                     .limits = step.limits,
                     .batch = step.batch,
                     .spans = step.tensors.spans,
                     .out = tensors_[0],
                     .token_map = rules_.token_map,
                     .drafter = step.index,
                     .first_entry = rules_.first_entry,
                     .max_rows = shape.max_catch_up_rows,
                     .max_len = rules_.max_len,
                     .last_only = rules_.last_only ? 1 : 0,
                     .in_order = rules_.in_order ? 1 : 0});
}

void DraftPasses::export_masked(Queue& queue, const DraftStep& step) {
  if (step.masks.ticket == nullptr) return;
  export_spans(queue, {.counts = step.tensors.counts,
                       .spans = step.tensors.spans,
                       .batch = step.batch,
                       .exchange = step.masks.exchange,
                       .ticket = step.masks.ticket,
                       .drafter = step.index,
                       .num_repaired = 0});
}

void DraftPasses::enqueue_branches(Queue& queue, const DraftStep& step, const DraftShape& shape,
                                   int pass) const {
  const DraftTensors& in = of(pass);
  branch_drafts(queue, {.plan = step.plan,
                        .limits = step.limits,
                        .batch = step.batch,
                        .counts = in.rows.counts,
                        .logits_rows = in.rows.logits_rows,
                        .sampled = in.rows.sampled,
                        .row_slot = in.rows.row_slot,
                        .alternatives = in.alternatives,
                        .slots = in.slots,
                        .pass = pass,
                        .min_chance = step.min_branch_chance,
                        .max_branches = shape.num_branches,
                        .max_rows = max_rows_});
  copy_branches(queue, {.plan = step.plan,
                        .limits = step.limits,
                        .batch = step.batch,
                        .counts = step.tensors.counts,
                        .spans = step.tensors.spans,
                        .full = step.full,
                        .windowed = step.windowed,
                        .pass = pass});
}

void DraftPasses::enqueue_next(Queue& queue, const DraftStep& step, const DraftShape& shape,
                               int pass) const {
  const StepTensors& in = of(pass).rows;
  draft_next(queue, {.batch = step.batch,
                     .counts = in.counts,
                     .row_slot = in.row_slot,
                     .logits_rows = in.logits_rows,
                     .sampled = in.sampled,
                     .out = of(pass + 1),
                     .token_map = rules_.token_map,
                     .pass = pass,
                     .keeps_written = rules_.keeps_written ? 1 : 0,
                     .max_rows = shape.max_spans + shape.num_branches,
                     .slots = shape.num_branches > 0 ? of(pass).slots : nullptr});
}

}  // namespace foretoken
