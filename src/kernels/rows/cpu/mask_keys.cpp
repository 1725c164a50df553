#include "kernels/rows/mask_keys.h"

#include "base/bfloat16.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
void mask_keys(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const MaskKeysArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int64_t stride = (int64_t{a.num_heads} + 2 * int64_t{a.num_kv_heads}) * a.head_dim;
  for_each_row(pool, rows, int64_t{16} * (a.num_heads + a.num_kv_heads), [&](int64_t row) {
    float* at = a.qkv + row * stride + a.element;
    for (int head = 0; head < a.num_heads; ++head, at += a.head_dim) at[0] = at[1] = 1;
    for (int head = 0; head < a.num_kv_heads; ++head, at += a.head_dim) {
      const float term = mask_term(a.steps[row * a.step_stride + head], a.rates[head], a.scale);
      at[0] = bf16_to_float(bf16_from_float(term));
      at[1] = term - at[0];
    }
  });
}

}  // namespace foretoken::cpu
