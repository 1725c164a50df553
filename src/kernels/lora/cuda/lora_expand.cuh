#pragma once
#include "kernels/lora/cuda/lora_tiles.cuh"

// What the expanding kernels share: a block has a tile of rows and some columns of one product or
// of two that stand side by side, a thread kCols neighbouring ones of each.
namespace foretoken::cuda {

// Rows of b that a thread holds at once.
template <class T>
constexpr int kHeldRanks = sizeof(T) == 2 ? 16 : 8;
constexpr int kLateRanks = 4;  // the same beyond these
constexpr int kRankStep = 16;  // what rows of t are padded to

__device__ inline void load_words(const void* from, uint32_t (&words)[1]) {
  words[0] = *static_cast<const uint32_t*>(from);
}
__device__ inline void load_words(const void* from, uint32_t (&words)[2]) {
  const uint2 all = *static_cast<const uint2*>(from);
  words[0] = all.x, words[1] = all.y;
}
__device__ inline void load_words(const void* from, uint32_t (&words)[4]) {
  const uint4 all = *static_cast<const uint4*>(from);
  words[0] = all.x, words[1] = all.y, words[2] = all.z, words[3] = all.w;
}

// kCols columns of up to kRanks rows of b, as they lie in memory.
template <class T, int kCols, int kRanks>
struct LoraColumns {
  static constexpr int kEach = 4 / sizeof(T);  // columns of a word
  uint32_t words[kRanks][kCols / kEach];

  // b: column 0 of row 0 of these; rows from `ranks` on are zeros.
  __device__ void load(const T* b, int64_t stride, int ranks) {
#pragma unroll
    for (int j = 0; j < kRanks; ++j) {
#pragma unroll
      for (int i = 0; i < kCols / kEach; ++i) words[j][i] = 0;
      if (j < ranks) load_words(b + j * stride, words[j]);
    }
  }

  __device__ float value(int j, int i) const {
    if constexpr (kEach == 1) return __uint_as_float(words[j][i]);
    const uint32_t pair = words[j][i / 2];
    return __uint_as_float(i % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
  }

  // Goes on with the chains over the rank: t of the first of kRows rows, `t_stride` apart.
  template <int kRows>
  __device__ void add(const float* t, int t_stride, float (&sum)[kRows][kCols]) const {
#pragma unroll
    for (int j = 0; j < kRanks; ++j) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float scale = t[r * t_stride + j];
#pragma unroll
        for (int i = 0; i < kCols; ++i) sum[r][i] = fmaf(value(j, i), scale, sum[r][i]);
      }
    }
  }
};

// The columns of one product that a thread has, and its adapter's t of the tile's rows in shared
// memory: [kLoraTileRows, t_stride], zeros behind the rank.
template <class T, int kCols>
struct LoraSide {
  LoraColumns<T, kCols, kHeldRanks<T>> first;  // fetched early
  const T* b = nullptr;                        // column 0 of the thread's
  int64_t stride = 0;
  int rank = 0;                    // 0: nothing is added
  const float* factors = nullptr;  // of the thread's columns; null: by one

  __device__ void find(const LoraExpandArgs& args, int adapter, int part, int column) {
    rank = 0;
    factors = nullptr;
    if (adapter < 0) return;
    const LoraMatrix matrix = lora_matrix(args.matrices, adapter, args.adapter_stride, part);
    stride = lora_stride(args.part_cols[part]);
    b = static_cast<const T*>(matrix.b) + column;
    rank = matrix.rank;
    if (matrix.factors != nullptr) factors = matrix.factors + column;
    first.load(b, stride, column < args.part_cols[part] ? rank : 0);
  }

  template <int kRows>
  __device__ void add_to(const float* t, int t_stride, float (&sum)[kRows][kCols]) const {
    first.add(t, t_stride, sum);
#pragma unroll 1
    for (int done = kHeldRanks<T>; done < rank; done += kLateRanks) {
      LoraColumns<T, kCols, kLateRanks> next;
      next.load(b + done * stride, stride, rank - done);
      next.add(t + done, t_stride, sum);
    }
  }
};

// Floats of a row of t in shared memory.
__host__ __device__ inline int lora_t_stride(int max_rank) {
  return ceil_div(max_rank, kRankStep) * kRankStep;
}

// By all threads of a block: t of a tile's rows for product `part`, summed over its splits.
__device__ inline void gather_t(const LoraExpandArgs& args, const LoraTile& tile, int part,
                                int rank, float* shared) {
  const int splits = lora_splits(args.k), stride = lora_t_stride(args.max_rank);
  for (int i = threadIdx.x; i < tile.count * stride; i += blockDim.x) {
    const int row = i / stride, j = i % stride;
    float sum = 0;
    if (j < rank) {
      const int64_t place = int64_t{tile.begin + row} * args.num_parts + part;
      const float* from = args.t + place * splits * args.max_rank + j;
#pragma unroll 4
      for (int s = 0; s < splits; ++s) sum += from[s * args.max_rank];
    }
    shared[i] = sum;
  }
}

}  // namespace foretoken::cuda
