#include "kernels/draft/draft_take.h"

#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {

void draft_take(const void* args, CpuPool&) {
  const auto& a = *static_cast<const DraftTakeArgs*>(args);
  for (int row = 0; row < a.counts->num_logits_rows; ++row) {
    const int32_t token_row = a.logits_rows[row];
    SlotState& state = a.batch.slots[a.row_slot[token_row]];
    if (a.before[token_row] + 1 != state.len) continue;
    int32_t count = 0;
    while (count < state.draft.num_draft_tokens && a.sampled[row + count] >= 0) {
      state.drafts[count] = a.sampled[row + count];
      ++count;
    }
    state.num_draft_tokens = count;
    state.draft.num_draft_tokens = count;
  }
}

}  // namespace foretoken::cpu
