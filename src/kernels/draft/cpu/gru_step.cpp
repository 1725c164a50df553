#include "kernels/draft/gru_step.h"

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/draft/gru_math.h"

namespace foretoken::cpu {

void gru_step(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const GruStepArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, int64_t{a.size} * 32, [&](int64_t row) {
    const int64_t gates = row * 3 * a.size;
    const float* x = a.of_input + gates;
    const float* h = a.of_state != nullptr ? a.of_state + gates : nullptr;
    float* state = a.states + int64_t{a.row_slot[row]} * a.size;
    for (int32_t i = 0; i < a.size; ++i) state[i] = gru_state(x, h, a.size, i, state[i]);
  });
}

}  // namespace foretoken::cpu
