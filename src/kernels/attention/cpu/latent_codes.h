#pragma once
#include "kernels/attention/cpu/fp8_entry.h"
#include "kernels/attention/cpu/int8_entry.h"
#include "kernels/attention/kv_layer.h"

namespace foretoken::cpu {

// Entries of the KV cache as codes, latents' among them (kernels/attention/kv_layer.h); they need
// no alignment.

// The codes of `count` elements of x; returns their scale.
FT_INLINE float store_group(KvFormat format, const float* x, int count, uint8_t* codes) {
  if (format == KvFormat::kInt8) {
    const CodeScale found = code_scale(x, count, 127.0f);
    store_codes(x, count, found.inverse, reinterpret_cast<int8_t*>(codes));
    return found.scale;
  }
  const uint32_t bits = highest_bits(x, count);
  float highest;
  std::memcpy(&highest, &bits, sizeof highest);
  const float scale = fp8_group_scale(highest);
  store_fp8_codes(x, count, scale, codes);
  return scale;
}

// The codes of `value_dim` latents, and their scales behind them.
FT_INLINE void store_latents(KvFormat format, const float* x, int value_dim, uint8_t* entry) {
  uint8_t* scales = entry + latent_scales_at(value_dim);
  for (int first = 0; first < value_dim; first += kLatentGroup) {
    const int left = value_dim - first;
    const int count = left < kLatentGroup ? left : kLatentGroup;
    const float scale = store_group(format, x + first, count, entry + first);
    std::memcpy(scales, &scale, sizeof scale);
    scales += sizeof scale;
  }
}

// out[i] = code i * scale, rounded to T (float or bfloat16).
template <class T>
FT_INLINE void widen_group(KvFormat format, const uint8_t* codes, int count, float scale, T* out) {
  if (format == KvFormat::kInt8) {
    widen_int8_codes(reinterpret_cast<const int8_t*>(codes), count, scale, out);
  } else {
    widen_codes(codes, count, scale, out);
  }
}

// The first `count` elements of an entry of kFp8, without the scale of its head, or of latents: all
// of them, or those that are the value too.
template <class T>
FT_INLINE void widen_entry(const KvLayer& kv, const std::byte* entry, int count, T* out) {
  const auto* codes = reinterpret_cast<const uint8_t*>(entry);
  if (kv.value_dim == 0) return widen_codes(codes, count, 1.0f, out);
  const uint8_t* scales = codes + latent_scales_at(kv.value_dim);
  for (int first = 0; first < kv.value_dim; first += kLatentGroup) {
    const int left = kv.value_dim - first;
    float scale;
    std::memcpy(&scale, scales, sizeof scale);
    scales += sizeof scale;
    widen_group(kv.format, codes + first, left < kLatentGroup ? left : kLatentGroup, scale,
                out + first);
  }
  if (count <= kv.value_dim) return;
  std::memcpy(out + kv.value_dim, codes + latent_plain_at(kv.value_dim),
              static_cast<size_t>(count - kv.value_dim) * sizeof(T));
}

}  // namespace foretoken::cpu
