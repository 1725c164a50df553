#include "kernels/latent/latent_kv.h"

#include <cmath>

#include "kernels/attention/cpu/latent_codes.h"
#include "kernels/attention/cpu/rotation.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

// out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i].
template <class Out>
FT_INLINE void norm_part(const float* x, const float* weight, int size, float eps, Out* out) {
  const float mean = sum_of_squares(x, size) / static_cast<float>(size);
  const float factor = 1.0f / std::sqrt(mean + eps);
  for (int i = 0; i < size; ++i) store_one(out + i, x[i] * factor * weight[i]);
}

// The latent, and the rope key behind it, as an entry of the cache.
template <class T>
FT_INLINE void store_plain(const LatentKvArgs& a, const Rotation& rotation, const float* latent,
                           std::byte* to) {
  T* entry = reinterpret_cast<T*>(to);
  norm_part(latent, a.kv_norm, a.kv_rank, a.norm_eps, entry);
  const int half = a.inv_freq == nullptr ? 0 : a.rope_dim / 2;
  rotate(latent + a.kv_rank, rotation, half, a.rope_dim, entry + a.kv_rank);
}

// The same as codes; the rope key need not be aligned.
template <class T>
FT_INLINE void store_coded(const LatentKvArgs& a, const Rotation& rotation, const float* latent,
                           std::byte* to) {
  float normed[kMaxHeadDim];
  norm_part(latent, a.kv_norm, a.kv_rank, a.norm_eps, normed);
  store_latents(a.kv.format, normed, a.kv_rank, reinterpret_cast<uint8_t*>(to));
  T turned[kMaxHeadDim];
  const int half = a.inv_freq == nullptr ? 0 : a.rope_dim / 2;
  rotate(latent + a.kv_rank, rotation, half, a.rope_dim, turned);
  std::memcpy(to + latent_plain_at(a.kv_rank), turned, static_cast<size_t>(a.rope_dim) * sizeof(T));
}

template <class T>
FT_INLINE void latent_row(const LatentKvArgs& a, const Rotation& rotation, int64_t row) {
  const float* x = a.x + row * (a.q_size + a.kv_rank + a.rope_dim);
  if (a.q_norm != nullptr) {
    T* q = static_cast<T*>(a.q_out) + row * a.q_size;
    norm_part(x, a.q_norm, a.q_size, a.norm_eps, q);
  }
  if (!holds_slot(a.kv, a.kv_slot[row])) return;
  const float* latent = x + a.q_size;
  std::byte* entry =
      static_cast<std::byte*>(a.kv.k) + entry_of_slot(a.kv, a.kv_slot[row]) * kv_entry_bytes(a.kv);
  if (a.kv.format == KvFormat::kPlain) {
    store_plain<T>(a, rotation, latent, entry);
  } else {
    store_coded<T>(a, rotation, latent, entry);
  }
}

FT_HOT void latent_row_f32(const LatentKvArgs& a, const Rotation& rotation, int64_t row) {
  latent_row<float>(a, rotation, row);
}
FT_HOT void latent_row_bf16(const LatentKvArgs& a, const Rotation& rotation, int64_t row) {
  latent_row<uint16_t>(a, rotation, row);
}

}  // namespace

// A cache with one head: its entries follow one another.
void latent_kv(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const LatentKvArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const auto run = a.kv.dtype == DType::kF32 ? latent_row_f32 : latent_row_bf16;
  const int pairs = a.inv_freq == nullptr ? 0 : a.rope_dim / 2;
  const Turning turning{a.inv_freq, pairs, a.scaling, a.position_shift, {}};
  for_each_row(pool, rows, int64_t{a.q_size} + a.kv.head_dim, [&](int64_t row) {
    Rotation rotation;
    make_rotation(turning, a.positions[row], &rotation);
    run(a, rotation, row);
  });
}

}  // namespace foretoken::cpu
