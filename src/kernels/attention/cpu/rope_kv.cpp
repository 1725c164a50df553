#include "kernels/attention/rope_kv.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/attention/cpu/fp8_entry.h"
#include "kernels/attention/cpu/int8_entry.h"
#include "kernels/attention/cpu/kv_entry.h"
#include "kernels/attention/cpu/rotation.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

FT_INLINE int rotated_pairs(const RopeKvArgs& a) {
  return a.inv_freq == nullptr ? 0 : a.rotary_dim / 2;
}

// The head x, or its norm in `buffer`.
FT_INLINE const float* normed_head(const RopeKvArgs& a, const float* x, const float* weight,
                                   float* buffer) {
  const int dim = a.kv.head_dim;
  if (a.clip > 0) {
    for (int i = 0; i < dim; ++i) buffer[i] = std::clamp(x[i], -a.clip, a.clip);
    x = buffer;
  }
  if (weight == nullptr) return x;
  const float mean = sum_of_squares(x, dim) / static_cast<float>(dim);
  const float factor = 1.0f / std::sqrt(mean + a.norm_eps);
  if (a.norm_after != 0) {
    for (int i = 0; i < dim; ++i) buffer[i] = x[i] * factor;
  } else {
    for (int i = 0; i < dim; ++i) buffer[i] = x[i] * factor * weight[i];
  }
  return buffer;
}

// What is rare, behind or beside the rotation: all of it in `turned`.
FT_INLINE void turn_scaled(const RopeKvArgs& a, const float* x, const Rotation& r,
                           const float* weight, float scale, float* turned) {
  const int dim = a.kv.head_dim;
  rotate(x, r, rotated_pairs(a), dim, turned);
  if (a.norm_after != 0 && weight != nullptr) {
    for (int i = 0; i < dim; ++i) turned[i] *= weight[i];
  }
  for (int i = 0; i < dim; ++i) turned[i] *= scale;
}

// An entry of the cache, and what its codes of kFp8 are multiplied by.
struct EntryPlace {
  void* to;
  float scale;
};

// Turns the head x into an entry of the cache: of type Entry, int8_t codes with their scale,
// uint8_t codes of kFp8.
template <class Entry>
FT_INLINE void store_entry(const float* x, const Rotation& r, int half, int dim,
                           const EntryPlace& place) {
  void* to = place.to;
  if constexpr (std::is_same_v<Entry, int8_t>) {
    float turned[kMaxHeadDim];
    rotate(x, r, half, dim, turned);
    store_int8_entry(turned, dim, static_cast<int8_t*>(to));
  } else if constexpr (std::is_same_v<Entry, uint8_t>) {
    float turned[kMaxHeadDim];
    rotate(x, r, half, dim, turned);
    store_fp8_codes(turned, dim, place.scale, static_cast<uint8_t*>(to));
  } else {
    rotate(x, r, half, dim, static_cast<Entry*>(to));
  }
}

template <class T, class Entry>
FT_INLINE void rope_row(const RopeKvArgs& a, const Rotation& rotation, int64_t row) {
  float buffer[kMaxHeadDim], turned[kMaxHeadDim];
  const int dim = a.kv.head_dim;
  const int half = rotated_pairs(a);
  const float* x = a.qkv + row * (a.num_heads + 2 * a.kv.num_kv_heads) * dim;
  T* q = static_cast<T*>(a.q_out) + row * a.num_heads * dim;
  for (int h = 0; h < a.num_heads; ++h, x += dim) {
    const float* head = normed_head(a, x, a.q_norm, buffer);
    if (a.norm_after == 0 && rotation.query_scale == 1) {
      rotate(head, rotation, half, dim, q + h * dim);
    } else {
      turn_scaled(a, head, rotation, a.q_norm, rotation.query_scale, turned);
      rotate(turned, rotation, 0, dim, q + h * dim);
    }
  }
  if (!holds_slot(a.kv, a.kv_slot[row])) return;
  const int64_t block = entry_of_slot(a.kv, a.kv_slot[row]) / a.kv.block_size;
  const int64_t offset = entry_of_slot(a.kv, a.kv_slot[row]) % a.kv.block_size;
  const auto entry = [&](void* cache, int h) {
    const int64_t index = kv_entry(a.kv, block, h, offset);
    const float scale = cache == a.kv.k ? key_scale(a.kv, h) : value_scale(a.kv, h);
    return EntryPlace{static_cast<std::byte*>(cache) + index * kv_entry_bytes(a.kv), scale};
  };
  for (int h = 0; h < a.kv.num_kv_heads; ++h, x += dim) {
    const float* head = normed_head(a, x, a.k_norm, buffer);
    if (a.norm_after == 0) {
      store_entry<Entry>(head, rotation, half, dim, entry(a.kv.k, h));
    } else {
      turn_scaled(a, head, rotation, a.k_norm, 1, turned);
      store_entry<Entry>(turned, rotation, 0, dim, entry(a.kv.k, h));
    }
  }
  for (int h = 0; h < a.kv.num_kv_heads; ++h, x += dim) {
    store_entry<Entry>(normed_head(a, x, nullptr, buffer), rotation, 0, dim, entry(a.kv.v, h));
  }
}

FT_HOT void rope_row_f32(const RopeKvArgs& a, const Rotation& rotation, int64_t row) {
  rope_row<float, float>(a, rotation, row);
}
FT_HOT void rope_row_bf16(const RopeKvArgs& a, const Rotation& rotation, int64_t row) {
  rope_row<uint16_t, uint16_t>(a, rotation, row);
}
FT_HOT void rope_row_f32_int8(const RopeKvArgs& a, const Rotation& rotation, int64_t row) {
  rope_row<float, int8_t>(a, rotation, row);
}
FT_HOT void rope_row_bf16_int8(const RopeKvArgs& a, const Rotation& rotation, int64_t row) {
  rope_row<uint16_t, int8_t>(a, rotation, row);
}

FT_HOT void rope_row_f32_fp8(const RopeKvArgs& a, const Rotation& rotation, int64_t row) {
  rope_row<float, uint8_t>(a, rotation, row);
}
FT_HOT void rope_row_bf16_fp8(const RopeKvArgs& a, const Rotation& rotation, int64_t row) {
  rope_row<uint16_t, uint8_t>(a, rotation, row);
}

auto row_function(const KvLayer& kv) {
  const bool is_f32 = kv.dtype == DType::kF32;
  switch (kv.format) {
    case KvFormat::kInt8:
      return is_f32 ? rope_row_f32_int8 : rope_row_bf16_int8;
    case KvFormat::kFp8:
      return is_f32 ? rope_row_f32_fp8 : rope_row_bf16_fp8;
    case KvFormat::kPlain:
      break;
  }
  return is_f32 ? rope_row_f32 : rope_row_bf16;
}

}  // namespace

void rope_kv(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const RopeKvArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int64_t cost = int64_t{a.num_heads + 2 * a.kv.num_kv_heads} * a.kv.head_dim;
  const auto run = row_function(a.kv);
  const Turning turning{a.inv_freq, rotated_pairs(a), a.scaling, a.position_shift, a.query_scale};
  for_each_row(pool, rows, cost, [&](int64_t row) {
    Rotation rotation;
    make_rotation(turning, a.positions[row], &rotation);
    run(a, rotation, row);
  });
}

}  // namespace foretoken::cpu
