#pragma once
#include <cuda_fp16.h>

#include <cstdint>

// What scales the codes of GGUF's blocks in units (dequant_weight.cuh), as it lies there and as a
// lane, whose row is lane / 4 of the unit's, keeps it. kBases: groups of a row in a unit.
namespace foretoken::cuda {

// Of a row and the k of one of its groups: value = scale * x + offset.
struct ScaleAndOffset {
  float scale;
  float offset;
};
__device__ inline uint32_t bits_of(const ScaleAndOffset& base) {
  return __float_as_uint(base.scale) | __float_as_uint(base.offset);
}
__device__ inline uint32_t bits_of(uint32_t base) { return base; }

__device__ inline float float_of_half(uint32_t bits) {
  return __half2float(__ushort_as_half(static_cast<uint16_t>(bits)));
}

// Words of row `row` of those that lie one row behind the other.
template <int Words>
__device__ inline void load_row(uint32_t (&words)[Words], const uint8_t* from, int row) {
  static_assert(Words == 1 || Words == 2 || Words == 4);
  if constexpr (Words == 1) words[0] = reinterpret_cast<const uint32_t*>(from)[row];
  if constexpr (Words == 2) {
    const uint2 both = reinterpret_cast<const uint2*>(from)[row];
    words[0] = both.x;
    words[1] = both.y;
  }
  if constexpr (Words == 4) {
    const uint4 all = reinterpret_cast<const uint4*>(from)[row];
    words[0] = all.x;
    words[1] = all.y;
    words[2] = all.z;
    words[3] = all.w;
  }
}

// Scaled scales: for each row its bytes, then for each row its halves. With minima: bytes of scales
// and then of minima, halves d and m. Without: bytes of scales plus 128, a half d, and the value is
// scale * (x - Zero).
template <int Groups, bool HasMinima, int Zero>
struct SuperScales {
  static constexpr bool kIsSuper = true;
  static constexpr bool kHasMinima = HasMinima;
  static constexpr int kBases = Groups;
  static constexpr int kLists = HasMinima ? 2 : 1;
  static constexpr int kWords = Groups / 4 * kLists;  // of a row
  static constexpr int kBytes = 8 * (kWords * 4 + kLists * 2);
  uint32_t words[kWords];
  uint32_t halves;

  __device__ void load(const uint8_t* scales) {
    const int row = threadIdx.x % 32 / 4;
    load_row(words, scales, row);
    const uint8_t* behind = scales + 8 * kWords * 4;
    halves = HasMinima ? reinterpret_cast<const uint32_t*>(behind)[row]
                       : reinterpret_cast<const uint16_t*>(behind)[row];
  }

  __device__ ScaleAndOffset base(int i) const {
    const float d = float_of_half(halves & 0xffffu);
    if constexpr (HasMinima) {
      return {times_byte<0>(d, words[i / 4], i % 4),
              times_byte<0>(-float_of_half(halves >> 16), words[kWords / 2 + i / 4], i % 4)};
    } else {
      const float scale = times_byte<128>(d, words[i / 4], i % 4);
      return {scale, static_cast<float>(-Zero) * scale};
    }
  }
  __device__ uint32_t last_read() const { return words[kWords - 1] | halves; }

 private:
  // factor * (byte i of word - Less), exactly: the byte becomes 2^15 + byte.
  template <int Less>
  __device__ static float times_byte(float factor, uint32_t word, int i) {
    const float moved =
        __uint_as_float(__byte_perm(word, 0x47000000u, static_cast<uint32_t>(0x7404 | i << 4)));
    return fmaf(factor, moved, factor * -static_cast<float>(32768 + Less));
  }
};

// A half for each 32 k: for each row its four scales; with minima, behind those of all rows, for
// each row its four minima. Without, the value is scale * (x - Zero).
template <bool HasMinima, int Zero>
struct HalfScales {
  static constexpr bool kIsSuper = false;
  static constexpr bool kHasMinima = HasMinima;
  static constexpr int kBases = 4;
  static constexpr int kLists = HasMinima ? 2 : 1;
  static constexpr int kBytes = 8 * 8 * kLists;
  uint32_t words[kLists][2];

  __device__ void load(const uint8_t* scales) {
#pragma unroll
    for (int list = 0; list < kLists; ++list) {
      load_row(words[list], scales + list * 64, static_cast<int>(threadIdx.x) % 32 / 4);
    }
  }
  __device__ ScaleAndOffset base(int i) const {
    const float scale = half_at(words[0], i);
    return {scale, HasMinima ? -half_at(words[kLists - 1], i) : static_cast<float>(-Zero) * scale};
  }
  __device__ uint32_t last_read() const { return words[kLists - 1][1]; }

 private:
  __device__ static float half_at(const uint32_t (&two)[2], int i) {
    return float_of_half(two[i / 2] >> (i % 2 * 16) & 0xffffu);
  }
};

}  // namespace foretoken::cuda
