#include "kernels/draft/cpu/draft_pass.h"

#include "kernels/draft_entries.h"

namespace foretoken::cpu {

void DraftPass::add_row(int32_t slot, int32_t position, int32_t id, int32_t source, int32_t seen) {
  const StepTensors& t = tensors_.rows;
  t.token_ids[num_rows_] = id;
  t.positions[num_rows_] = position;
  t.row_slot[num_rows_] = slot;
  t.kv_slot[num_rows_] = kv_slot_at(batch_, slot, position);
  tensors_.source[num_rows_] = source;
  if (tensors_.seen != nullptr) tensors_.seen[num_rows_] = seen;
  ++num_rows_;
}

void DraftPass::want_logits() { tensors_.rows.logits_rows[num_logits_rows_++] = num_rows_ - 1; }

void DraftPass::finish() {
  const StepTensors& t = tensors_.rows;
  *t.counts = StepCounts{num_rows_, num_logits_rows_, 0, 0};
  for (int row = num_rows_; row < max_rows_; ++row) {
    t.token_ids[row] = 0;
    t.positions[row] = 0;
    t.row_slot[row] = batch_.num_slots;
    t.kv_slot[row] = 0;
    tensors_.source[row] = 0;
    if (tensors_.seen != nullptr) tensors_.seen[row] = 0;
  }
}

}  // namespace foretoken::cpu
