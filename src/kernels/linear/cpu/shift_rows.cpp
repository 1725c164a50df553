#include "kernels/linear/shift_rows.h"

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/linear/state_run.h"

namespace foretoken::cpu {
namespace {

float* shifted_history(const ShiftRowsArgs& a, int slot, int position) {
  const int64_t row = int64_t{slot} * a.history_rows + position % a.history_rows;
  return a.history + row * a.history_stride;
}

// `before`: null: zeros.
template <class T, class Before>
FT_INLINE void mix_row(const T* x, const Before* before, const float* mix, int size, T* out) {
  for (int i = 0; i < size; ++i) {
    const float own = load_one(x + i);
    const float other = before != nullptr ? load_one(before + i) : 0.0f;
    store_one(out + i, own + (other - own) * mix[i]);
  }
}

template <class T>
void shift_row(const ShiftRowsArgs& a, const StateRows& rows, int64_t row) {
  const T* x = static_cast<const T*>(a.x) + row * a.size;
  const int position = a.positions[row];
  const bool goes_on = rows.continues(static_cast<int32_t>(row));
  const float* kept =
      goes_on || position == 0 ? nullptr : shifted_history(a, a.row_slot[row], position - 1);
  for (int j = 0; j < a.num_mixes; ++j) {
    const float* mix = a.mixes + int64_t{j} * a.size;
    T* out = static_cast<T*>(a.out) + (int64_t{j} * a.max_rows + row) * a.size;
    goes_on ? mix_row(x, x - a.size, mix, a.size, out) : mix_row(x, kept, mix, a.size, out);
  }
}

template <class T>
void shift_all(const ShiftRowsArgs& a, const StateRows& rows, CpuPool& pool) {
  for_each_row(pool, rows.count, int64_t{a.num_mixes} * a.size,
               [&](int64_t row) { shift_row<T>(a, rows, row); });
  // What later runs read, once no row reads what this one has read.
  for (int32_t row = 0; row < rows.count; ++row) {
    if (rows.same_run(row, row + a.history_rows)) continue;
    const T* x = static_cast<const T*>(a.x) + int64_t{row} * a.size;
    float* to = shifted_history(a, a.row_slot[row], a.positions[row]);
    for (int i = 0; i < a.size; ++i) to[i] = load_one(x + i);
  }
}

}  // namespace

void shift_rows(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ShiftRowsArgs*>(args);
  const StateRows rows{a.positions, a.row_slot,
                       live_rows(*a.counts, RowKind::kToken, 0, a.max_rows)};
  if (rows.count == 0) return;
  a.dtype == DType::kF32 ? shift_all<float>(a, rows, pool) : shift_all<uint16_t>(a, rows, pool);
}

}  // namespace foretoken::cpu
