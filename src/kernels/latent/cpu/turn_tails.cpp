#include "kernels/latent/turn_tails.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/latent/cpu/coded_entry.h"
#include "kernels/latent/cpu/tail_turn.h"

namespace foretoken::cpu {
namespace {

struct TurnedHead {
  float elements[kMaxTailHead];
};

template <class T>
FT_INLINE void turn_row(const TurnTailsArgs& a, const TailTurn& turn, int64_t row, float* head) {
  const int64_t first =
      a.entry_slot != nullptr ? a.entry_slot[row] / a.context_size : row * a.num_heads;
  for (int h = 0; h < a.num_heads; ++h) {
    std::copy_n(a.x + row * a.x_stride + int64_t{h} * a.head_dim, a.head_dim, head);
    if (a.norm_eps > 0) norm_head(head, a.head_dim, a.norm_eps, a.norm);
    turn_tail(turn, head, a.head_dim);
    const EntryForm form = entry_form(a);
    store_entry<T>(form, head, static_cast<std::byte*>(a.out) + (first + h) * form.bytes());
  }
}

FT_HOT void turn_row_f32(const TurnTailsArgs& a, const TailTurn& turn, int64_t row, float* head) {
  turn_row<float>(a, turn, row, head);
}
FT_HOT void turn_row_bf16(const TurnTailsArgs& a, const TailTurn& turn, int64_t row, float* head) {
  turn_row<uint16_t>(a, turn, row, head);
}

}  // namespace

void turn_tails(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const TurnTailsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const auto run = a.dtype == DType::kF32 ? turn_row_f32 : turn_row_bf16;
  for_each_row(pool, rows, int64_t{a.num_heads} * a.head_dim, [&](int64_t row) {
    if (!keeps_tail(a, row)) return;
    TailTurn turn;
    make_tail_turn(a.inv_freq, a.rope_dim / 2, a.scaling, a.positions[row] + a.position_shift,
                   a.back, &turn);
    run(a, turn, row, thread_scratch<TurnedHead>().elements);
  });
}

}  // namespace foretoken::cpu
