#include "kernels/experts/combine_experts.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/experts/cpu/expert_sum.h"

namespace foretoken::cpu {
namespace {

constexpr int kPiece = 1024;  // columns

template <class T>
FT_INLINE void add_product(float* sum, const T* y, float weight, int n) {
  for (int i = 0; i < n; ++i) sum[i] = std::fma(weight, load_one(y + i), sum[i]);
}
FT_HOT void add_product_f32(float* sum, const float* y, float weight, int n) {
  add_product(sum, y, weight, n);
}
FT_HOT void add_product_bf16(float* sum, const uint16_t* y, float weight, int n) {
  add_product(sum, y, weight, n);
}

void combine_piece(const CombineExpertsArgs& a, int64_t row, int col) {
  const int n = std::min(kPiece, a.hidden - col);
  float sum[kPiece];
  begin_expert_sum(a, shared_stride(a), row, col, n, sum);
  for (int slot = 0; slot < a.top_k; ++slot) {
    const int64_t entry = row * a.top_k + slot;
    const int own = a.ids[entry] - a.first_expert;
    if (own < 0 || own >= a.num_own) continue;
    const float weight = a.weights != nullptr ? a.weights[entry] : 1.0f;
    const int64_t at = entry * a.hidden + col;
    if (a.dtype == DType::kF32) {
      add_product_f32(sum, static_cast<const float*>(a.y) + at, weight, n);
    } else {
      add_product_bf16(sum, static_cast<const uint16_t*>(a.y) + at, weight, n);
    }
  }
  float* out = a.out + row * a.hidden + col;
  for (int i = 0; i < n; ++i) out[i] = a.add != 0 ? out[i] + sum[i] : sum[i];
}

}  // namespace

void combine_experts(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const CombineExpertsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int pieces = (a.hidden + kPiece - 1) / kPiece;
  for_each_row(
      pool, int64_t{rows} * pieces, int64_t{a.top_k} * std::min(kPiece, a.hidden),
      [&](int64_t i) { combine_piece(a, i / pieces, static_cast<int>(i % pieces) * kPiece); });
  if (a.norm == nullptr) return;
  const RmsNormArgs norm = norm_behind(a);
  rms_norm(&norm, pool);
}

}  // namespace foretoken::cpu
