#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/latent/choose_entries.h"

// Scores of the positions that rows see, by their indexer.
namespace foretoken::cuda {

inline constexpr int kScoreThreads = 256;

// The rows whose scores have room at the same time.
struct RowBatch {
  int first;
  int64_t stride;  // scores of a row
};

struct SeenPositions {
  int slot;
  int begin;
  int count;

  __device__ SeenPositions(const ChooseEntriesArgs& args, int row) {
    const SeenKeys keys = seen_keys(args, args.positions[row]);
    slot = args.row_slot[row];
    begin = keys.begin;
    count = keys.end - keys.begin;
  }
  __device__ int64_t entry(const ChooseEntriesArgs& args, int index) const {
    const int position = begin + index;
    const int64_t table = int64_t{slot} * args.max_blocks;
    const int block = args.block_tables[table + position / args.block_size];
    return int64_t{block} * args.block_size + position % args.block_size;
  }
};

__host__ __device__ constexpr int padded_heads(int num_heads) { return (num_heads + 15) / 16 * 16; }

// The weights of a row's heads, and of those of zeros behind them.
__device__ inline void load_index_weights(const ChooseEntriesArgs& args, int row, float* weights) {
  for (int head = threadIdx.x; head < padded_heads(args.num_heads); head += kScoreThreads) {
    weights[head] =
        head < args.num_heads ? args.weights[int64_t{row} * args.num_heads + head] : 0.0f;
  }
}

// Queries of a row in shared memory, with heads of zeros behind them, and scores by them. Each
// score_tile takes a warp's kWarpPositions positions from `first` on.
//
// Any size of heads, 4 bytes a lane at once.
struct AnyIndexHeads {
  using Element = __nv_bfloat16;
  static constexpr int kWarpPositions = 8;
  static constexpr int kPadding =
      8;  // elements between heads, so that their rows lie in others' banks
  const ChooseEntriesArgs& args;
  const float* weights;
  Element* q;

  __host__ __device__ static int stride(const ChooseEntriesArgs& args) {
    return args.head_dim + kPadding;
  }
  __device__ void load(int row) const {
    const int dim = args.head_dim;
    const auto* from = static_cast<const Element*>(args.q) + int64_t{row} * args.num_heads * dim;
    for (int e = threadIdx.x; e < padded_heads(args.num_heads) * dim; e += kScoreThreads) {
      const int head = e / dim;
      q[head * stride(args) + e % dim] =
          head < args.num_heads ? from[e] : from_float<Element>(0.0f);
    }
  }

  // By products of 16 heads: a lane adds up heads lane / 4, + 8, + 16, ... of two positions, then
  // lanes join.
  __device__ void score_tile(const SeenPositions& seen, int first, float* scores) const {
    const int lane = threadIdx.x % 32;
    const int group = lane / 4, pair = lane % 4 * 2;
    const int64_t entry = seen.entry(args, min(first + group, seen.count - 1));
    const auto* key = static_cast<const Element*>(args.keys) + entry * args.head_dim + pair;
    const auto two = [](const Element* from) { return *reinterpret_cast<const uint32_t*>(from); };
    float sums[2] = {};
    for (int head = group; head < padded_heads(args.num_heads); head += 16) {
      float products[4] = {};
      const Element* low = q + head * stride(args) + pair;
      const Element* high = low + 8 * stride(args);
      for (int d = 0; d < args.head_dim; d += 16) {
        mma_bf16(products, two(low + d), two(high + d), two(low + d + 8), two(high + d + 8),
                 two(key + d), two(key + d + 8));
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float positive = products[i] < 0 ? 0.0f : products[i];
        sums[i % 2] = fmaf(weights[head + i / 2 * 8], positive, sums[i % 2]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      for (int offset = 4; offset < 32; offset *= 2) {
        sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], offset);
      }
      if (group == 0 && first + pair + i < seen.count) scores[first + pair + i] = sums[i];
    }
  }
};

// Heads of Dim elements, 16 bytes a lane at once, of which each four make a lane's operands of two
// products: keys wait in registers while all heads go by.
template <int Dim>
struct WideIndexHeads {
  using Element = __nv_bfloat16;
  static constexpr int kTiles = 2;  // of eight positions
  static constexpr int kWarpPositions = kTiles * 8;
  static constexpr int kSteps = Dim / 32;
  static constexpr int kStride = Dim + 32;  // so that eight lanes read other banks
  const ChooseEntriesArgs& args;
  const float* weights;
  Element* q;

  __host__ __device__ static int stride(const ChooseEntriesArgs&) { return kStride; }
  __device__ void load(int row) const {
    constexpr int kPieces = Dim / 8;
    const auto* from = static_cast<const uint4*>(args.q) + int64_t{row} * args.num_heads * kPieces;
    for (int i = threadIdx.x; i < padded_heads(args.num_heads) * kPieces; i += kScoreThreads) {
      const int head = i / kPieces;
      *reinterpret_cast<uint4*>(q + head * kStride + i % kPieces * 8) =
          head < args.num_heads ? from[i] : uint4{};
    }
  }

  // As AnyIndexHeads does.
  __device__ void score_tile(const SeenPositions& seen, int first, float* scores) const {
    const int lane = threadIdx.x % 32;
    const int group = lane / 4, quarter = lane % 4;
    uint4 keys[kTiles][kSteps];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const int64_t entry = seen.entry(args, min(first + t * 8 + group, seen.count - 1));
      const auto* key = static_cast<const Element*>(args.keys) + entry * Dim + quarter * 8;
#pragma unroll
      for (int k = 0; k < kSteps; ++k) keys[t][k] = *reinterpret_cast<const uint4*>(key + k * 32);
    }
    float sums[kTiles][2] = {};
    for (int head = group; head < padded_heads(args.num_heads); head += 16) {
      float products[kTiles][4] = {};
      const Element* of_head = q + head * kStride + quarter * 8;
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        const uint4 low = *reinterpret_cast<const uint4*>(of_head + k * 32);
        const uint4 high = *reinterpret_cast<const uint4*>(of_head + 8 * kStride + k * 32);
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          const uint4 key = keys[t][k];
          mma_bf16(products[t], low.x, high.x, low.y, high.y, key.x, key.y);
          mma_bf16(products[t], low.z, high.z, low.w, high.w, key.z, key.w);
        }
      }
      const float of_low = weights[head], of_high = weights[head + 8];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float positive = products[t][i] < 0 ? 0.0f : products[t][i];
          sums[t][i % 2] = fmaf(i < 2 ? of_low : of_high, positive, sums[t][i % 2]);
        }
      }
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float sum = sums[t][i];
        for (int offset = 4; offset < 32; offset *= 2) {
          sum += __shfl_xor_sync(0xffffffffu, sum, offset);
        }
        const int index = first + t * 8 + quarter * 2 + i;
        if (group == 0 && index < seen.count) scores[index] = sum;
      }
    }
  }
};

// Floats, a position by each thread of the first quarter of them.
struct FloatIndexHeads {
  using Element = float;
  static constexpr int kWarpPositions = 8;
  static constexpr int kPadding = 8;
  const ChooseEntriesArgs& args;
  const float* weights;
  float* q;

  __host__ __device__ static int stride(const ChooseEntriesArgs& args) {
    return args.head_dim + kPadding;
  }
  __device__ void load(int row) const {
    const int dim = args.head_dim;
    const auto* from = static_cast<const float*>(args.q) + int64_t{row} * args.num_heads * dim;
    for (int e = threadIdx.x; e < args.num_heads * dim; e += kScoreThreads) {
      q[e / dim * stride(args) + e % dim] = from[e];
    }
  }

  __device__ void score_tile(const SeenPositions& seen, int first, float* scores) const {
    const int lane = threadIdx.x % 32;
    if (lane >= kWarpPositions || first + lane >= seen.count) return;
    const auto* key =
        static_cast<const float*>(args.keys) + seen.entry(args, first + lane) * args.head_dim;
    float sum = 0;
    for (int head = 0; head < args.num_heads; ++head) {
      const float* own = q + head * stride(args);
      float product = 0;
      for (int d = 0; d < args.head_dim; ++d) product = fmaf(own[d], key[d], product);
      sum = fmaf(weights[head], product < 0 ? 0.0f : product, sum);
    }
    scores[first + lane] = sum;
  }
};

// Block (part of the positions, row of the batch).
template <class Heads>
__global__ void __launch_bounds__(kScoreThreads)
    index_scores_kernel(ChooseEntriesArgs args, RowBatch batch) {
  constexpr int kTile = kScoreThreads / 32 * Heads::kWarpPositions;
  extern __shared__ __align__(16) char score_shared[];
  wait_for_previous();
  const int row = batch.first + static_cast<int>(blockIdx.y);
  if (row >= args.counts->num_rows) return;
  const SeenPositions seen(args, row);
  if (seen.count <= args.top || static_cast<int>(blockIdx.x) * kTile >= seen.count) return;
  auto* weights = reinterpret_cast<float*>(score_shared);
  const Heads heads{
      args, weights,
      reinterpret_cast<typename Heads::Element*>(weights + padded_heads(args.num_heads))};
  load_index_weights(args, row, weights);
  heads.load(row);
  __syncthreads();
  float* scores = args.workspace + blockIdx.y * batch.stride;
  const int own = static_cast<int>(threadIdx.x) / 32 * Heads::kWarpPositions;
  for (int first = blockIdx.x * kTile + own; first < seen.count; first += gridDim.x * kTile) {
    heads.score_tile(seen, first, scores);
  }
}

// rows: of the batch.
template <class Heads>
void launch_index_scores(const ChooseEntriesArgs& args, const RowBatch& batch, int rows,
                         cudaStream_t stream) {
  constexpr int kTile = kScoreThreads / 32 * Heads::kWarpPositions;
  constexpr int kFewest = 16;  // blocks of a row that sees much
  constexpr int kBlocks = 4;   // wanted of a multiprocessor
  const int heads = padded_heads(args.num_heads);
  const size_t bytes =
      heads * (sizeof(float) + Heads::stride(args) * sizeof(typename Heads::Element));
  const auto kernel = index_scores_kernel<Heads>;
  const cudaError_t raised = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (raised != cudaSuccess) return;
  const int wanted = max(ceil_div(kBlocks * device_traits().num_sms, rows), kFewest);
  const int tiles = ceil_div(batch.stride, kTile);
  launch_kernel(kernel, dim3(min(tiles, wanted), rows), kScoreThreads, bytes, stream, args, batch);
}

}  // namespace foretoken::cuda
