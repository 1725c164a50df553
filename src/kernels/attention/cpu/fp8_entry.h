#pragma once
#include "base/float8.h"
#include "kernels/attention/kv_layer.h"
#include "kernels/cpu/hot.h"

namespace foretoken::cpu {

// Entries of the KV cache as KvFormat::kFp8 lays them out; they need no alignment.

// codes[i] is that of x[i] / scale.
FT_INLINE void store_fp8_codes(const float* x, int count, float scale, uint8_t* codes) {
  for (int i = 0; i < count; ++i) codes[i] = e4m3_code(x[i] / scale);
}

// The codes of `value_dim` latents, and their scales behind them.
FT_INLINE void store_fp8_latents(const float* x, int value_dim, uint8_t* entry) {
  uint8_t* scales = entry + fp8_scales_at(value_dim);
  for (int first = 0; first < value_dim; first += kFp8LatentGroup) {
    const int count = value_dim - first < kFp8LatentGroup ? value_dim - first : kFp8LatentGroup;
    uint32_t bits = 0;  // as integers, so that no NaN is passed over
    for (int i = first; i < first + count; ++i) {
      uint32_t own;
      std::memcpy(&own, x + i, sizeof own);
      own &= 0x7fffffffu;
      bits = own > bits ? own : bits;
    }
    float highest;
    std::memcpy(&highest, &bits, sizeof highest);
    const float scale = fp8_group_scale(highest);
    store_fp8_codes(x + first, count, scale, entry + first);
    std::memcpy(scales, &scale, sizeof scale);
    scales += sizeof scale;
  }
}

// What 16 codes stand for: e4m3_value.
FT_INLINE void load_e4m3(Lanes& out, const uint8_t* codes) {
  typedef uint8_t LanesU8 __attribute__((vector_size(16)));
  LanesU8 narrow;
  std::memcpy(&narrow, codes, sizeof narrow);
  const LanesU32 wide = __builtin_convertvector(narrow, LanesU32);
  const LanesU32 magnitude = wide & 0x7fu;
  const LanesU32 small = reinterpret_cast<LanesU32>(magnitude < 8u);
  LanesU32 bits = ((magnitude + (small & 8u)) << 20) + (120u << 23);
  const LanesU32 taken = small & 0x3c800000u;  // 2^-6
  Lanes value, less;
  std::memcpy(&value, &bits, sizeof value);
  std::memcpy(&less, &taken, sizeof less);
  value -= less;
  std::memcpy(&bits, &value, sizeof bits);
  const LanesU32 nan = reinterpret_cast<LanesU32>(magnitude == 0x7fu);
  bits = (nan & 0x7fc00000u) | (~nan & bits) | ((wide & 0x80u) << 24);
  std::memcpy(&out, &bits, sizeof out);
}

// out[i] = code i * scale, rounded to T (float or bfloat16).
template <class T>
FT_INLINE void widen_codes(const uint8_t* codes, int count, float scale, T* out) {
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Lanes lanes;
    load_e4m3(lanes, codes + i);
    lanes *= scale;
    store(out + i, lanes);
  }
  for (; i < count; ++i) store_one(out + i, e4m3_value(codes[i]) * scale);
}

// The first `count` elements of an entry, without the scale of its head: all, or those that are the
// value too.
template <class T>
FT_INLINE void widen_fp8_entry(const KvLayer& kv, const std::byte* entry, int count, T* out) {
  const auto* codes = reinterpret_cast<const uint8_t*>(entry);
  if (kv.value_dim == 0) return widen_codes(codes, count, 1.0f, out);
  const uint8_t* scales = codes + fp8_scales_at(kv.value_dim);
  for (int first = 0; first < kv.value_dim; first += kFp8LatentGroup) {
    const int left = kv.value_dim - first;
    float scale;
    std::memcpy(&scale, scales, sizeof scale);
    scales += sizeof scale;
    widen_codes(codes + first, left < kFp8LatentGroup ? left : kFp8LatentGroup, scale, out + first);
  }
  if (count <= kv.value_dim) return;
  std::memcpy(out + kv.value_dim, codes + fp8_plain_at(kv.value_dim),
              static_cast<size_t>(count - kv.value_dim) * sizeof(T));
}

}  // namespace foretoken::cpu
