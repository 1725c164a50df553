#include "draft/block_pass.h"

#include "base/check.h"
#include "kernels/draft/draft_take.h"

namespace foretoken {

BlockPass::BlockPass(Device& device, int32_t max_spans, const Rules& rules)
    : max_spans_(max_spans), rules_(rules), arena_(device, MemoryKind::kDevice) {}

Status BlockPass::take() {
  const auto rows = static_cast<size_t>(max_spans_ * rules_.rows);
  const char* what = "a drafter's rows";
  FT_ASSIGN_OR_RETURN(tensors_.rows.counts, arena_.take_array<StepCounts>(1, what));
  for (int32_t** ids : {&tensors_.rows.token_ids, &tensors_.rows.positions, &tensors_.rows.row_slot,
                        &tensors_.rows.kv_slot, &tensors_.rows.logits_rows, &tensors_.rows.sampled,
                        &tensors_.source, &last_seen_, &before_}) {
    FT_ASSIGN_OR_RETURN(*ids, arena_.take_array<int32_t>(rows, what));
  }
  return {};
}

int32_t BlockPass::lay_out(Queue& queue, const DraftStep& step, const DraftShape& shape,
                           const DraftTensors& known) const {
  FT_CHECK(shape.max_spans <= max_spans_ && shape.num_draft_tokens <= rules_.max_draft_tokens);
  const int32_t rows = shape.max_spans * rules_.rows;
  draft_block(queue, {.batch = step.batch,
                      .counts = known.rows.counts,
                      .token_ids = known.rows.token_ids,
                      .row_slot = known.rows.row_slot,
                      .logits_rows = known.rows.logits_rows,
                      .out = tensors_,
                      .last_seen = last_seen_,
                      .before = before_,
                      .mask_id = rules_.mask_id,
                      .rows = static_cast<int16_t>(rules_.rows),
                      .first_drafting = static_cast<int8_t>(rules_.rows - rules_.max_draft_tokens),
                      .first_entry = static_cast<int8_t>(rules_.first_entry),
                      .max_rows = rows,
                      .mask_source = rules_.mask_source});
  return rows;
}

StepTensors BlockPass::drawn() const {
  StepTensors drawn = tensors_.rows;
  drawn.positions = before_;
  return drawn;
}

void BlockPass::take_drafts(Queue& queue, const DraftStep& step, int32_t max_logits_rows) const {
  draft_take(queue, {.batch = step.batch,
                     .counts = tensors_.rows.counts,
                     .logits_rows = tensors_.rows.logits_rows,
                     .row_slot = tensors_.rows.row_slot,
                     .before = before_,
                     .sampled = tensors_.rows.sampled,
                     .max_rows = max_logits_rows});
}

}  // namespace foretoken
