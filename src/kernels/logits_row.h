#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/branches.h"
#include "kernels/step_types.h"

namespace foretoken {

// Where a logits row stands in its sequence.
struct LogitsRow {
  int32_t slot;
  int32_t position;
  bool scored;  // the token of position + 1 is known
};

// Logits row `index` of the step, as prepare placed it.
FT_HD inline LogitsRow logits_row(const StepTensors& tensors, const SlotState* slots,
                                  int32_t index) {
  const int32_t token_row = tensors.logits_rows[index];
  const int32_t slot = tensors.row_slot[token_row];
  const int32_t position = tensors.positions[token_row];
  return {slot, position, position + 1 < slots[slot].len};
}

// The id at a position of a slot's history: its known tokens and then its drafts. The position must
// lie within both.
FT_HD inline int32_t history_id(const BatchState& batch, int32_t slot, int32_t position) {
  const SlotState& state = batch.slots[slot];
  if (position >= state.len) return state.drafts[position - state.len];
  const int32_t block = batch.block_tables[int64_t{text_slot(batch, slot)} * batch.max_blocks +
                                           position / batch.block_size];
  return batch.token_pages[int64_t{block} * batch.block_size + position % batch.block_size];
}

}  // namespace foretoken
