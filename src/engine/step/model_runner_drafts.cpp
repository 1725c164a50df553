#include "engine/step/model_runner.h"

#include <algorithm>

#include "kernels/comm/collectives.h"
#include "kernels/draft/choose_draft.h"
#include "kernels/draft/choose_lengths.h"
#include "kernels/sampling/token_masks.h"
#include "kernels/step/stamp.h"

namespace foretoken {

void ModelRunner::enqueue_drafts(Queue& queue, const StepShape& shape) {
  if (!config_.stages.is_last()) return;
  bool any = false;
  // Look-ups have their turns first: others may stand behind them in a list.
  for (const bool looks_up : {true, false}) {
    for (size_t i = 0; i < drafters_.size(); ++i) {
      if (drafters_[i]->traits().looks_up != looks_up || shape.drafts[i] == DraftShape{}) continue;
      enqueue_drafter(queue, static_cast<int>(i), shape);
      any = true;
    }
  }
  if (any) stamp(queue, {memory_.step_counter, memory_.stamps});
}

void ModelRunner::enqueue_drafter(Queue& queue, int index, const StepShape& step) {
  Drafter& drafter = *drafters_[static_cast<size_t>(index)];
  const DraftShape& shape = step.drafts[static_cast<size_t>(index)];
  choose_lengths(queue, {.plan = memory_.plan,
                         .limits = memory_.limits(),
                         .batch = memory_.batch,
                         .spans = memory_.tensors.spans,
                         .result = memory_.result,
                         .result_limits = memory_.result_limits(),
                         .row_ns = row_ns(shape),
                         .num_row_ns = times_in_use() != nullptr ? config_.max_rows + 1 : 0,
                         .draft_ns = draft_ns(index, shape),
                         .drafter = index,
                         .draft_max_len = drafter.traits().max_len,
                         .max_draft_tokens = drafter.traits().max_draft_tokens});
  drafter.propose(queue,
                  {.plan = memory_.plan,
                   .limits = memory_.limits(),
                   .batch = memory_.batch,
                   .tensors = memory_.tensors,
                   .caches = kv_caches_,
                   .index = index,
                   .masks = draft_masks(step),
                   .full = branch_parts_,
                   .windowed = branch_window_parts_,
                   .min_branch_chance = config_.min_branch_chance},
                  shape);
  if (drafter.traits().looks_up && drafters_.size() > 1) enqueue_choice(queue, index, step);
  if (repairs(drafter, step, shape)) enqueue_repairs(queue, index, shape.num_draft_tokens);
}

void ModelRunner::enqueue_choice(Queue& queue, int index, const StepShape& step) {
  int32_t lookups = 0, rivals = 0;
  for (size_t i = 0; i < drafters_.size(); ++i) {
    if (!drafters_[i]->traits().looks_up) continue;
    lookups |= 1 << i;
    if (static_cast<int>(i) > index && step.drafts[i] != DraftShape{}) rivals |= 1 << i;
  }
  choose_draft(queue, {.plan = memory_.plan,
                       .limits = memory_.limits(),
                       .batch = memory_.batch,
                       .drafter = index,
                       .lookups = lookups,
                       .rivals = rivals});
}

// Of several ranks the first alone has masks, and all must have the same drafts.
bool ModelRunner::repairs(const Drafter& drafter, const StepShape& step,
                          const DraftShape& shape) const {
  return (step.features & kHasGrammar) != 0 && drafter.traits().proposes_unmasked &&
         shape.num_draft_tokens > 0 && config_.comm == nullptr;
}

void ModelRunner::enqueue_repairs(Queue& queue, int index, int num_draft_tokens) {
  enqueue_mask_post(queue, index, num_draft_tokens);
  enqueue_mask_wait(queue, index, config_.draft_mask_budget_ns, true);
}

DraftMasks ModelRunner::draft_masks(const StepShape& shape) const {
  if ((shape.features & kHasGrammar) == 0) return {};
  return {.exchange = scratch_.masks,
          .ticket = scratch_.mask_ticket,
          .budget_ns = config_.draft_mask_budget_ns,
          .comm = config_.comm,
          .waits = config_.has_masks};
}

// One of the step itself, one of each pass that drafts, and one to repair what was looked up.
int ModelRunner::num_mask_tickets(const StepShape& shape) const {
  if ((shape.features & kHasGrammar) == 0) return 0;
  int count = 1;
  for (size_t i = 0; i < drafters_.size(); ++i) {
    const DraftShape& drafts = shape.drafts[i];
    const DrafterTraits& traits = drafters_[i]->traits();
    const bool passes = drafts.max_catch_up_rows > 0 || !traits.has_kv;
    if (passes && !traits.proposes_unmasked) count += drafts.num_draft_tokens;
    if (repairs(*drafters_[i], shape, drafts)) ++count;
  }
  return count;
}

void ModelRunner::enqueue_mask_share(Queue& queue, int max_rows) {
  const MaskExchange& masks = scratch_.masks;
  share_masks(queue, {.comm = config_.comm,
                      .counts = memory_.tensors.counts,
                      .spans = memory_.tensors.spans,
                      .slots = memory_.batch.slots,
                      .params = memory_.batch.params,
                      .masks = masks.masks,
                      .mask_words = masks.mask_words,
                      .max_spans = masks.max_spans,
                      .max_rows = std::min(max_rows, masks.max_spans * masks.rows_each)});
}

void ModelRunner::enqueue_mask_post(Queue& queue, int drafter, int num_repaired) {
  export_spans(queue, {.counts = memory_.tensors.counts,
                       .spans = memory_.tensors.spans,
                       .batch = memory_.batch,
                       .exchange = scratch_.masks,
                       .ticket = scratch_.mask_ticket,
                       .drafter = drafter,
                       .num_repaired = num_repaired});
}

void ModelRunner::enqueue_mask_wait(Queue& queue, int drafter, int64_t budget_ns, bool repairs) {
  await_masks(queue, {.counts = memory_.tensors.counts,
                      .spans = memory_.tensors.spans,
                      .slots = memory_.batch.slots,
                      .params = memory_.batch.params,
                      .exchange = scratch_.masks,
                      .ticket = scratch_.mask_ticket,
                      .budget_ns = budget_ns,
                      .drafter = drafter,
                      .repairs = repairs ? 1 : 0});
}

}  // namespace foretoken
