#include "kernels/draft/draft_block.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/draft/cpu/draft_pass.h"

namespace foretoken::cpu {
namespace {

// The rows of one slot, of which the first has the last known token, row `anchor` of the catch-up.
void add_block(const DraftBlockArgs& a, int32_t anchor, DraftPass& pass) {
  const int32_t slot = a.row_slot[anchor];
  const SlotState& state = a.batch.slots[slot];
  const int32_t rows = block_rows(a, a.batch.params[slot], state.len);
  const int32_t first = state.len - 1 + a.first_entry;
  for (int32_t i = 0; i < rows; ++i) {
    const int32_t row = pass.num_rows();
    pass.add_row(slot, first + i, i == 0 ? a.token_ids[anchor] : a.mask_id,
                 i == 0 ? anchor : a.mask_source);
    a.last_seen[row] = first + rows - 1;
    const int32_t draft = i - a.first_drafting;
    a.before[row] = state.len - 1 + draft;
    if (draft >= 0 && draft < state.draft.num_draft_tokens) pass.want_logits();
  }
}

}  // namespace

void draft_block(const void* args, CpuPool&) {
  const auto& a = *static_cast<const DraftBlockArgs*>(args);
  DraftPass pass(a.out, a.batch, a.max_rows);
  for (int j = 0; j < a.counts->num_logits_rows; ++j) {
    add_block(a, a.logits_rows[j], pass);
  }
  for (int32_t* list : {a.last_seen, a.before}) {
    std::fill(list + pass.num_rows(), list + a.max_rows, 0);
  }
  pass.finish();
}

}  // namespace foretoken::cpu
