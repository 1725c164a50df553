#pragma once
#include "kernels/attention/code_scale.h"
#include "kernels/cpu/hot.h"

namespace foretoken::cpu {

// Entries of the KV cache as KvFormat::kInt8 lays them out (they need no alignment), and queries
// that are multiplied with them.

typedef int32_t LanesI32 __attribute__((vector_size(64)));

// The bits of the largest magnitude, compared as integers, so that no NaN is passed over.
FT_INLINE uint32_t highest_bits(const float* x, int count) {
  LanesU32 lanes = {};
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    LanesU32 bits;
    std::memcpy(&bits, x + i, sizeof bits);
    bits &= 0x7fffffffu;
    lanes = bits > lanes ? bits : lanes;
  }
  uint32_t highest = 0;
  for (int lane = 0; lane < kLanes; ++lane) highest = lanes[lane] > highest ? lanes[lane] : highest;
  for (; i < count; ++i) {
    uint32_t own;
    std::memcpy(&own, x + i, sizeof own);
    own &= 0x7fffffffu;
    highest = own > highest ? own : highest;
  }
  return highest;
}

// For codes from -most to most.
FT_INLINE CodeScale code_scale(const float* x, int dim, float most) {
  return scale_of_highest(highest_bits(x, dim), most);
}

// codes[i] = x[i] * inverse to the nearest integer, ties to even; zeros where inverse is zero.
template <class Code>
FT_INLINE void store_codes(const float* x, int dim, float inverse, Code* codes) {
  constexpr float kMagic = 0x1.8p23f;  // moves the integer into the lowest bits
  constexpr int32_t kMagicBits = 0x4b400000;
  typedef Code LanesCode __attribute__((vector_size(kLanes * sizeof(Code))));
  if (inverse == 0) {
    std::memset(codes, 0, static_cast<size_t>(dim) * sizeof(Code));
    return;
  }
  int i = 0;
  for (; i + kLanes <= dim; i += kLanes) {
    Lanes lanes;
    load(lanes, x + i);
    lanes = lanes * inverse + kMagic;
    LanesI32 bits;
    std::memcpy(&bits, &lanes, sizeof bits);
    const LanesCode narrow = __builtin_convertvector(bits - kMagicBits, LanesCode);
    std::memcpy(codes + i, &narrow, sizeof narrow);
  }
  for (; i < dim; ++i) {
    const float moved = x[i] * inverse + kMagic;
    int32_t bits;
    std::memcpy(&bits, &moved, sizeof bits);
    codes[i] = static_cast<Code>(bits - kMagicBits);
  }
}

FT_INLINE void store_int8_entry(const float* x, int dim, int8_t* entry) {
  const CodeScale found = code_scale(x, dim, 127.0f);
  store_codes(x, dim, found.inverse, entry);
  std::memcpy(entry + dim, &found.scale, sizeof found.scale);
}

// out[i] = code i * scale, rounded to T (float or bfloat16).
template <class T>
FT_INLINE void widen_int8_codes(const int8_t* codes, int count, float scale, T* out) {
  typedef int8_t LanesI8 __attribute__((vector_size(kLanes)));
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    LanesI8 narrow;
    std::memcpy(&narrow, codes + i, sizeof narrow);
    Lanes lanes = __builtin_convertvector(narrow, Lanes);
    lanes *= scale;
    store(out + i, lanes);
  }
  for (; i < count; ++i) store_one(out + i, static_cast<float>(codes[i]) * scale);
}

FT_INLINE float int8_entry_scale(const int8_t* entry, int dim) {
  float scale;
  std::memcpy(&scale, entry + dim, sizeof scale);
  return scale;
}

}  // namespace foretoken::cpu
