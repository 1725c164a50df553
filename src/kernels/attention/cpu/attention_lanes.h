#pragma once
#include <cstdint>
#include <span>

namespace foretoken::cpu {

inline constexpr int kKeysAtOnce = 16;

// Of scores whose exponentials, relative to the maximum, were rounded: that, and the sum of these.
struct SoftWeights {
  float max;
  float sum;
};

// What attention in tiles needs beside products of bfloat16, for one kind of processor. Bits of the
// weights differ between them.
struct AttentionLanes {
  const char* name;

  // Packs the keys of 16 positions as the columns of a Bf16Block (kernels/gemm/cpu/bf16_kernels.h):
  // of each 32 of the `dim` elements, 16 vectors of 16 positions x 2 neighbours, `step_stride`
  // elements apart. A null pointer is a key of zeros. dim is a multiple of 32.
  void (*pack_keys)(const uint16_t* const (&keys)[kKeysAtOnce], int dim, uint16_t* to,
                    int64_t step_stride);

  // Packs the values of two neighbouring positions, which are neighbours of k there: to[i] gets
  // elements 16 i .. 16 i + 15 of both as one vector, vectors `stride` elements apart. A null
  // pointer is a value of zeros. Returns whether all are finite. dim is a multiple of 16.
  bool (*pack_value_pair)(const uint16_t* first, const uint16_t* second, int dim, uint16_t* to,
                          int64_t stride);

  // out[i] = e4m3_value(codes[i]) (base/float8.h), which bfloat16 holds exactly. count is a
  // multiple of 32.
  void (*widen_e4m3)(const uint8_t* codes, int count, uint16_t* out);

  // The exponentials of scores [begin, end), relative to their maximum, as bfloat16; zero in the
  // rest of [from, to), which are multiples of 16. Scores of [from, to) must be readable. The sum
  // is in an order that depends on the positions alone.
  SoftWeights (*soften)(const float* scores, int begin, int end, int from, int to,
                        uint16_t* weights);
};

// Those that this machine can run, the fastest first; none without AVX2.
std::span<const AttentionLanes> attention_lanes();

}  // namespace foretoken::cpu
