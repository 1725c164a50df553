#include "kernels/rms_norm.h"

#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

FT_HOT void add_delta(float* x, const float* delta, int n) {
  for (int i = 0; i < n; ++i) x[i] += delta[i];
}

FT_HOT float row_squares(const float* x, int n) { return sum_of_squares(x, n); }

template <class Out>
FT_INLINE void scale_row(const float* x, const float* weight, float factor, Out* out, int n) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes lanes, w;
    load(lanes, x + i);
    load(w, weight + i);
    lanes = lanes * factor * w;
    store(out + i, lanes);
  }
  for (; i < n; ++i) store_one(out + i, x[i] * factor * weight[i]);
}

FT_HOT void scale_row_f32(const float* x, const float* w, float factor, float* out, int n) {
  scale_row(x, w, factor, out, n);
}
FT_HOT void scale_row_bf16(const float* x, const float* w, float factor, uint16_t* out, int n) {
  scale_row(x, w, factor, out, n);
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
    if (a.delta != nullptr) add_delta(x, a.delta + row * a.hidden, a.hidden);
    const float mean = row_squares(x, a.hidden) / static_cast<float>(a.hidden);
    const float factor = 1.0f / std::sqrt(mean + a.eps);
    if (a.out_dtype == DType::kF32) {
      scale_row_f32(x, a.weight, factor, static_cast<float*>(a.out) + i * a.hidden, a.hidden);
    } else {
      scale_row_bf16(x, a.weight, factor, static_cast<uint16_t*>(a.out) + i * a.hidden, a.hidden);
    }
  });
}

}  // namespace foretoken::cpu
