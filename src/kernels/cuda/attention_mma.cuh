#pragma once
#include <numeric>

#include "kernels/cuda/attention_common.cuh"
#include "kernels/cuda/mma.cuh"

// What the tensor core kernels of attention share.
namespace foretoken::cuda {

inline constexpr int kGroupRows = 16;  // query rows of one product
inline constexpr int kUnit = 64;       // KV positions that are scored with one step of the softmax
inline constexpr int kSplitUnits = kAttentionSplit / kUnit;
static_assert(kAttentionSplit % kUnit == 0);

// Whether unit number `unit` is the last of its split.
__device__ inline bool ends_split(int unit) { return unit % kSplitUnits == kSplitUnits - 1; }

// Address of the 16-byte chunk c of row r in a tile of rows of `Chunks` chunks: ldmatrix reads
// eight rows of one chunk without bank conflicts. Rows that start in the same bank differ in the
// chunk.
template <int Chunks>
__device__ uint32_t chunk_offset(int r, int c) {
  constexpr int kInBanks = std::gcd(Chunks, 8);  // rows that start in one bank, of 8
  return r * (Chunks * 16) + ((c ^ (r / (8 / kInBanks) % kInBanks)) << 4);
}

__device__ inline uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

}  // namespace foretoken::cuda
