#include "kernels/latent/index_rows.h"

#include <cmath>

#include "kernels/attention/cpu/rotation.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

// out = norm(x) by root mean squares.
FT_INLINE void norm_index_head(const IndexRowsArgs& a, const float* x, const float* weight,
                               float* out) {
  const float mean = sum_of_squares(x, a.head_dim) / static_cast<float>(a.head_dim);
  const float factor = 1.0f / std::sqrt(mean + a.norm_eps);
  for (int i = 0; i < a.head_dim; ++i) out[i] = x[i] * factor * weight[i];
}

// out = norm(x), as IndexRowsArgs says.
FT_INLINE void norm_index_key(const IndexRowsArgs& a, const float* x, float* out) {
  if (a.norm_bias == nullptr) return norm_index_head(a, x, a.norm_weight, out);
  const auto size = static_cast<float>(a.head_dim);
  float sum = 0;
  for (int i = 0; i < a.head_dim; ++i) sum += x[i];
  const float mean = sum / size;
  for (int i = 0; i < a.head_dim; ++i) out[i] = x[i] - mean;
  const float factor = 1.0f / std::sqrt(sum_of_squares(out, a.head_dim) / size + a.norm_eps);
  for (int i = 0; i < a.head_dim; ++i) {
    out[i] = out[i] * factor * a.norm_weight[i] + a.norm_bias[i];
  }
}

template <class T>
FT_INLINE void index_row(const IndexRowsArgs& a, const Rotation& rotation, int64_t row) {
  const int half = a.inv_freq == nullptr ? 0 : a.rope_dim / 2;
  float normed[kMaxIndexDim];
  const float* query = index_queries(a, row);
  T* q_out = static_cast<T*>(a.q_out) + row * a.num_heads * a.head_dim;
  for (int h = 0; h < a.num_heads; ++h, query += a.head_dim, q_out += a.head_dim) {
    if (a.query_norm != nullptr) norm_index_head(a, query, a.query_norm, normed);
    rotate(a.query_norm != nullptr ? normed : query, rotation, half, a.head_dim, q_out);
  }
  norm_index_key(a, index_key(a, row), normed);
  T* entry = static_cast<T*>(a.keys) + int64_t{a.kv_slot[row]} * a.head_dim;
  rotate(normed, rotation, half, a.head_dim, entry);
}

FT_HOT void index_row_f32(const IndexRowsArgs& a, const Rotation& rotation, int64_t row) {
  index_row<float>(a, rotation, row);
}
FT_HOT void index_row_bf16(const IndexRowsArgs& a, const Rotation& rotation, int64_t row) {
  index_row<uint16_t>(a, rotation, row);
}

}  // namespace

void index_rows(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const IndexRowsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const auto run = a.dtype == DType::kF32 ? index_row_f32 : index_row_bf16;
  const int pairs = a.inv_freq == nullptr ? 0 : a.rope_dim / 2;
  const Turning turning{a.inv_freq, pairs, a.scaling, a.position_shift, {}};
  for_each_row(pool, rows, (int64_t{a.num_heads} + 1) * a.head_dim, [&](int64_t row) {
    Rotation rotation;
    make_rotation(turning, a.positions[row], &rotation);
    run(a, rotation, row);
  });
}

}  // namespace foretoken::cpu
