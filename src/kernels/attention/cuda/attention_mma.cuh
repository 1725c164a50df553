#pragma once
#include <numeric>

#include "kernels/attention/cuda/attention_common.cuh"
#include "kernels/cuda/mma.cuh"

// What the tensor core kernels of attention share.
namespace foretoken::cuda {

inline constexpr int kGroupRows = 16;  // query rows of one product
inline constexpr int kUnit = 64;       // KV positions that are scored with one step of the softmax
static_assert(kAttentionSplit % kUnit == 0);

// Whether unit number `unit` is the last of its split.
__device__ inline bool ends_split(int unit) {
  return ((unit + 1) * kUnit & (AttentionSplits::width(unit * kUnit) - 1)) == 0;
}
// Number of the split that holds unit number `unit`.
__device__ inline int split_of_unit(int unit) { return AttentionSplits::of(unit * kUnit); }
// First unit of the first split that begins at unit number `unit` > 0 or behind.
__device__ inline int next_split(int unit) {
  const int position = (unit - 1) * kUnit;
  return (AttentionSplits::floor(position) + AttentionSplits::width(position)) / kUnit;
}
// First unit of the split that holds unit number `unit`.
__device__ inline int split_floor(int unit) { return AttentionSplits::floor(unit * kUnit) / kUnit; }

// Address of the 16-byte chunk c of row r in a tile of rows of `Chunks` chunks: ldmatrix reads
// eight rows of one chunk without bank conflicts. Rows that start in the same bank differ in the
// chunk.
template <int Chunks>
__device__ uint32_t chunk_offset(int r, int c) {
  constexpr int kInBanks = std::gcd(Chunks, 8);  // rows that start in one bank, of 8
  return r * (Chunks * 16) + ((c ^ (r / (8 / kInBanks) % kInBanks)) << 4);
}

}  // namespace foretoken::cuda
