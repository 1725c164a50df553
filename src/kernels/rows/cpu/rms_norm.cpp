#include "kernels/rows/rms_norm.h"

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/rows/cpu/norm_row.h"

namespace foretoken::cpu {
namespace {

FT_HOT void add_delta(float* x, const float* delta, float scale, int n) {
  for (int i = 0; i < n; ++i) x[i] += delta[i] * scale;
}

template <class Out>
void write_norm(const RmsNormArgs& a, const NormRow& row, Out* out) {
  if (a.centred != 0) {
    write_layer_normed(row, {a.weight, a.bias}, a.eps, out);
  } else {
    write_normed(row, a.weight, a.eps, out);
  }
}

}  // namespace

void rms_norm(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const RmsNormArgs*>(args);
  const bool gathered = a.row_index != nullptr;
  const int rows = live_rows(*a.counts, gathered ? RowKind::kLogits : RowKind::kToken,
                             gathered ? a.row_offset : 0, a.max_rows);
  for_each_row(pool, rows, 2 * int64_t{a.hidden}, [&](int64_t i) {
    const int64_t row = gathered ? a.row_index[a.row_offset + i] : i;
    float* x = a.residual + row * a.hidden;
    const float* delta = a.delta != nullptr ? a.delta + row * a.hidden : nullptr;
    if (delta != nullptr && !gathered) add_delta(x, delta, a.delta_scale, a.hidden);
    const NormRow values{x, gathered ? delta : nullptr, a.hidden, a.delta_scale};
    if (a.out_dtype == DType::kF32) {
      write_norm(a, values, static_cast<float*>(a.out) + i * a.hidden);
    } else {
      write_norm(a, values, static_cast<uint16_t*>(a.out) + i * a.hidden);
    }
  });
}

}  // namespace foretoken::cpu
