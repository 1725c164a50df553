#include "kernels/draft/draft_next.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/draft/cpu/draft_pass.h"

namespace foretoken::cpu {

void draft_next(const void* args, CpuPool&) {
  const auto& a = *static_cast<const DraftNextArgs*>(args);
  DraftPass pass(a.out, a.batch, a.max_rows);
  for (int j = 0; j < a.counts->num_logits_rows; ++j) {
    const int32_t row = a.logits_rows[j];
    const int32_t slot = a.slots != nullptr ? a.slots[j] : a.row_slot[row];
    const int32_t id = a.sampled[j];
    SlotState& state = a.batch.slots[slot];
    if (id < 0) {
      state.draft.num_draft_tokens = state.num_draft_tokens;
      continue;
    }
    state.drafts[a.pass] = id;
    state.num_draft_tokens = a.pass + 1;
    if (state.draft.num_draft_tokens <= a.pass + 1) continue;
    const int32_t position = state.len + a.pass;
    pass.add_row(slot, position, a.token_map != nullptr ? a.token_map[id] : id, row,
                 std::max(state.len - 2, 0));
    pass.want_logits();
    if (a.keeps_written != 0) state.draft.written = position + 1;
  }
  pass.finish();
}

}  // namespace foretoken::cpu
