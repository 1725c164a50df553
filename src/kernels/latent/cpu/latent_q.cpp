#include "kernels/latent/latent_q.h"

#include "kernels/attention/cpu/rotation.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

template <class T>
FT_INLINE void query_row(const LatentQArgs& a, const Rotation& rotation, int64_t row) {
  const int half = a.inv_freq == nullptr ? 0 : a.rope_dim / 2;
  const float* x = a.x + row * a.x_stride;
  T* nope = static_cast<T*>(a.nope) + row * a.num_heads * a.nope_dim;
  T* q = static_cast<T*>(a.q) + row * a.num_heads * (a.kv_rank + a.rope_dim);
  for (int h = 0; h < a.num_heads; ++h) {
    q += a.kv_rank;
    if (rotation.query_scale == 1) {
      for (int i = 0; i < a.nope_dim; ++i) store_one(nope + i, x[i]);
      rotate(x + a.nope_dim, rotation, half, a.rope_dim, q);
    } else {
      float turned[kMaxHeadDim];
      rotate(x + a.nope_dim, rotation, half, a.rope_dim, turned);
      for (int i = 0; i < a.nope_dim; ++i) store_one(nope + i, x[i] * rotation.query_scale);
      for (int i = 0; i < a.rope_dim; ++i) store_one(q + i, turned[i] * rotation.query_scale);
    }
    x += a.nope_dim + a.rope_dim;
    nope += a.nope_dim;
    q += a.rope_dim;
  }
}

FT_HOT void query_row_f32(const LatentQArgs& a, const Rotation& rotation, int64_t row) {
  query_row<float>(a, rotation, row);
}
FT_HOT void query_row_bf16(const LatentQArgs& a, const Rotation& rotation, int64_t row) {
  query_row<uint16_t>(a, rotation, row);
}

}  // namespace

void latent_q(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const LatentQArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const auto run = a.dtype == DType::kF32 ? query_row_f32 : query_row_bf16;
  const int pairs = a.inv_freq == nullptr ? 0 : a.rope_dim / 2;
  const Turning turning{a.inv_freq, pairs, a.scaling, a.position_shift, a.query_scale};
  const int64_t cost = int64_t{a.num_heads} * (a.nope_dim + a.rope_dim);
  for_each_row(pool, rows, cost, [&](int64_t row) {
    Rotation rotation;
    make_rotation(turning, a.positions[row], &rotation);
    run(a, rotation, row);
  });
  if (a.absorb == nullptr) return;
  const HeadGemmArgs product = absorbing_product(a);
  head_gemm(&product, pool);
}

}  // namespace foretoken::cpu
