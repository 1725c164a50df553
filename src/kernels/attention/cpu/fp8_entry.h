#pragma once
#include "base/float8.h"
#include "kernels/cpu/hot.h"

namespace foretoken::cpu {

// Codes of the KV cache as KvFormat::kFp8 has them; they need no alignment.

// codes[i] is that of x[i] / scale.
FT_INLINE void store_fp8_codes(const float* x, int count, float scale, uint8_t* codes) {
  for (int i = 0; i < count; ++i) codes[i] = e4m3_code(x[i] / scale);
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

}  // namespace foretoken::cpu
