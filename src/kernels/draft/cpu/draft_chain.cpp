#include "kernels/draft/draft_chain.h"

#include "kernels/cpu/op_table.h"

namespace foretoken::cpu {
namespace {

// Takes the slot's draft before this one, which is row i of the step before.
void take_before(const DraftChainArgs& a, int32_t row, int32_t i, SlotState& state) {
  const int32_t drawn = a.drawn[i];
  const int32_t id = drawn < 0 || a.id_map == nullptr ? drawn : a.id_map[drawn];
  a.sampled[row + a.draft - 1] = id;
  const bool sure = a.confidence == nullptr || a.confidence[i] >= a.least;
  if (id < 0 || !sure) state.draft.num_draft_tokens = a.draft - 1;
}

}  // namespace

void draft_chain(const void* args, CpuPool&) {
  const auto& a = *static_cast<const DraftChainArgs*>(args);
  int32_t taken = 0, rows = 0;
  for (int32_t row = 0; row < a.counts->num_logits_rows; ++row) {
    const int32_t token_row = a.logits_rows[row];
    const int32_t slot = a.row_slot[token_row];
    SlotState& state = a.slots[slot];
    if (a.before[token_row] + 1 != state.len) continue;
    if (a.draft > 0 && state.draft.num_draft_tokens >= a.draft) take_before(a, row, taken++, state);
    if (state.draft.num_draft_tokens <= a.draft) continue;
    a.out_ids[rows] = a.draft > 0 ? a.sampled[row + a.draft - 1] : a.token_ids[token_row - a.lead];
    a.out_from[rows] = row + a.draft;
    a.out_positions[rows] = state.len - 1 + a.draft;
    a.out_slot[rows] = slot;
    a.out_logits_rows[rows] = rows;
    ++rows;
  }
  *a.out_counts = StepCounts{rows, rows, 0, 0};
  for (int32_t row = rows; row < a.max_out; ++row) {
    a.out_ids[row] = a.out_from[row] = a.out_positions[row] = 0;
    a.out_slot[row] = a.num_slots;
    a.out_logits_rows[row] = row;
  }
}

}  // namespace foretoken::cpu
