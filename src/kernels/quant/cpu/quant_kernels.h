#pragma once
#include <cstdint>
#include <span>

#include "base/quantized_rows.h"

namespace foretoken::cpu {

inline constexpr int kQuantCols = 16;  // columns of y that are packed together
inline constexpr int kQuantStep = 32;  // neighbours of k that share a scale of x
inline constexpr int kMaxQuantRows = 8;
inline constexpr int kQuantKinds = 16;

// Thirty-two neighbours of a row of x: x[i] is about scale * codes[i]. The last fields are sums of
// the codes times what weights of that many bits have to have subtracted from their codes.
struct QuantStep {
  int8_t codes[kQuantStep];
  float scale;
  float scaled_sum;          // scale * sum of the codes
  int32_t minus_middle4;     // -8 * sum
  int32_t minus_middle8;     // -128 * sum
  int32_t minus_middle6[2];  // -32 * sum of the first and the last sixteen
  float scaled_sums16[2];    // scale * sum of the first and the last sixteen
};

// kQuantCols columns of a weight, packed. Codes: for each 32 of k, 16 columns x 4 neighbours a
// vector of 64 bytes, of which there are eight. Eight bits: eight vectors. Four bits: vectors j and
// j + 4 are the low and high halves of the bytes of vector j. Two bits: vectors 4 i .. 4 i + 3 are
// those of vector i, from the lowest bits of a byte up. Five, six and three bits: the lower four or
// two so, then the upper bit of vectors 0 .. 7 in one more vector, or the upper two as above in two
// more. Scales, each for 16 columns: kHalf: s of each group; kHalfAndZero: s and zero of each
// group; kHalfAndMinimum: s and m of each group; kSuper: for every 256 of k d, m, and of each group
// s and t; kSuperSigned: d, and of each group s.
struct QuantBlock {
  const uint8_t* codes;
  const uint8_t* scales;
};

constexpr int64_t quant_code_bytes(int bits, int64_t k) { return k * kQuantCols * bits / 8; }
int64_t quant_scale_bytes(const QuantForm& form, int64_t k);

// tile[rows, 16] += x[rows, k] times the block, where x has k / 32 steps of `rows` rows each. Every
// element is one chain of additions over k, the same for every number of rows and however k is cut
// into calls.
using QuantProduct = void (*)(const QuantBlock& block, const QuantStep* x, int64_t num_steps,
                              int steps_per_group, float* tile);

// The kernels for one kind of processor. Their bits are equal.
struct QuantKernels {
  const char* name;
  int max_rows;  // at most kMaxQuantRows
  // By kind of form (quant_kind) and rows - 1.
  QuantProduct products[kQuantKinds][kMaxQuantRows];
};

// Index of a form among the kernels; -1: there are none for it.
int quant_kind(const QuantForm& form);

// Those that this machine can run, the fastest first.
std::span<const QuantKernels> quant_kernels();

}  // namespace foretoken::cpu
