#include "kernels/cuda/launchers.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/lora/cuda/lora_look_up.cuh"
#include "kernels/lora/cuda/lora_shrink_plain.cuh"
#include "kernels/lora/cuda/lora_tiles.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kShrinkWarps = 8;
constexpr int kShrinkThreads = kShrinkWarps * 32;
constexpr int kShrinkBlocks = 3;  // of a multiprocessor, beside those of a product
constexpr int kWarpK = kLoraSplitK / kShrinkWarps;
constexpr int kStepK = 32;  // two products of tensor cores
constexpr int kSteps = kWarpK / kStepK;
constexpr int kTileRanks = kTileN;
constexpr int kTileX = 8;  // rows of x that are multiplied at once

// A tile of rows, a product, kTileRanks rows of its a and kLoraSplitK inputs of these.
struct ShrinkItem {
  LoraTile tile;
  const __nv_bfloat16* a;  // the first of these rows
  float scale;
  int part;
  int first_rank;
  int ranks;  // of these rows; below 1: nothing is to be done
  int split;
};

struct ShrinkItems {
  int groups;  // of kTileRanks
  int splits;
  __device__ explicit ShrinkItems(const LoraShrinkArgs& args)
      : groups(ceil_div(args.max_rank, kTileRanks)), splits(lora_splits(args.k)) {}
  __device__ int of_tile(const LoraShrinkArgs& args) const {
    return args.num_parts * groups * splits;
  }
  __device__ int count(const LoraShrinkArgs& args) const {
    return *args.rows.num_tiles * of_tile(args);
  }
  __device__ ShrinkItem at(const LoraShrinkArgs& args, int index) const {
    ShrinkItem item;
    item.split = index % splits;
    index /= splits;
    item.first_rank = index % groups * kTileRanks;
    index /= groups;
    item.part = index % args.num_parts;
    item.tile = args.rows.tiles[index / args.num_parts];
    const LoraMatrix matrix =
        lora_matrix(args.matrices, item.tile.adapter, args.adapter_stride, item.part);
    item.a = lora_a<__nv_bfloat16>(matrix) + int64_t{item.first_rank} * args.k;
    item.scale = matrix.scale;
    item.ranks = matrix.rank - item.first_rank;
    return item;
  }
};

__device__ uint4 load_or_zeros(const __nv_bfloat16* from, bool valid) {
  return valid ? *reinterpret_cast<const uint4*>(from) : uint4{};
}

// Past the multiprocessor's own cache, which may hold what x was in the layer before: beside a
// product nothing is waited for.
__device__ uint4 newest_or_zeros(const __nv_bfloat16* from, bool valid) {
  return valid ? __ldcg(reinterpret_cast<const uint4*>(from)) : uint4{};
}

// A lane has 8 neighbouring inputs of each step: the same of all operands, so that it does not
// matter which of them a product takes for its first.
__device__ int lane_k(int split, int step) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  return split * kLoraSplitK + warp * kWarpK + step * kStepK + lane % 4 * 8;
}

struct ShrinkA {
  uint4 low[kSteps];   // of row lane / 4
  uint4 high[kSteps];  // of row lane / 4 + 8

  __device__ void load(const ShrinkItem& item, int k) {
    const int row = threadIdx.x % 32 / 4;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int at = lane_k(item.split, step);
      low[step] = load_or_zeros(item.a + int64_t{row} * k + at, at < k && row < item.ranks);
      high[step] =
          load_or_zeros(item.a + int64_t{row + 8} * k + at, at < k && row + 8 < item.ranks);
    }
  }
};

__device__ void prefetch_a(const ShrinkItem& item, int k) {
  constexpr int kLines = kLoraSplitK * 2 / kLineBytes;
  for (int i = threadIdx.x; i < kTileRanks * kLines; i += kShrinkThreads) {
    const int row = i / kLines, at = item.split * kLoraSplitK + i % kLines * (kLineBytes / 2);
    if (row < item.ranks && at < k) prefetch_line(item.a + int64_t{row} * k + at);
  }
}

// A warp's sums for kTileX rows of x, its chain over its inputs: [row][rank].
__device__ void multiply(const LoraShrinkArgs& args, const ShrinkItem& item, const ShrinkA& a,
                         int done, float* sums) {
  const int lane = threadIdx.x % 32;
  const int own = done + lane / 4;
  const bool live = own < item.tile.count;
  const int64_t row = live ? args.rows.rows[item.tile.begin + own] : 0;
  const auto* x = static_cast<const __nv_bfloat16*>(args.x) + row * args.k;
  uint4 right[kSteps];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int at = lane_k(item.split, step);
    right[step] = newest_or_zeros(x + at, live && at < args.k);
  }
  float c[4] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const uint4 &low = a.low[step], &high = a.high[step], &b = right[step];
    mma_bf16(c, low.x, high.x, low.y, high.y, b.x, b.y);
    mma_bf16(c, low.z, high.z, low.w, high.w, b.z, b.w);
  }
  float* const to = sums + lane % 4 * 2 * kTileRanks + lane / 4;
  to[0] = c[0];
  to[kTileRanks] = c[1];
  to[8] = c[2];
  to[kTileRanks + 8] = c[3];
}

// Warp after warp, the same order for all rows.
__device__ void store_sums(const LoraShrinkArgs& args, const ShrinkItem& item, int splits, int done,
                           const float (&partial)[kShrinkWarps][kTileX * kTileRanks]) {
  for (int i = threadIdx.x; i < kTileX * kTileRanks; i += kShrinkThreads) {
    const int row = done + i / kTileRanks, rank = i % kTileRanks;
    if (row >= item.tile.count || rank >= item.ranks) continue;
    float sum = partial[0][i];
#pragma unroll
    for (int w = 1; w < kShrinkWarps; ++w) sum += partial[w][i];
    const int64_t place = int64_t{item.tile.begin + row} * args.num_parts + item.part;
    args.t[(place * splits + item.split) * args.max_rank + item.first_rank + rank] =
        item.scale * sum;
  }
}

__global__ void __launch_bounds__(kShrinkThreads, kShrinkBlocks)
    lora_shrink_kernel(const __grid_constant__ LoraShrinkArgs args) {
  let_next_start();
  __shared__ float partial[kShrinkWarps][kTileX * kTileRanks];
  const ShrinkItems items(args);
  const int count = items.count(args);
  const bool beside = args.beside_product != 0;
  if (!beside) {
    for (int index = blockIdx.x; index < count; index += gridDim.x) {
      prefetch_a(items.at(args, index), args.k);
    }
    wait_for_all_before();
  }
  for (int index = blockIdx.x; index < count; index += gridDim.x) {
    const ShrinkItem item = items.at(args, index);
    if (item.ranks < 1) continue;
    ShrinkA a;
    a.load(item, args.k);
    for (int done = 0; done < item.tile.count; done += kTileX) {
      multiply(args, item, a, done, partial[threadIdx.x / 32]);
      __syncthreads();
      store_sums(args, item, items.splits, done, partial);
      __syncthreads();
    }
  }
  if (beside && blockIdx.x == 0) wait_for_all_before();  // this op ends after the product
}

}  // namespace

void launch_lora_shrink(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LoraShrinkArgs>(packed);
  if (args.token_ids != nullptr) return launch_lora_look_up(args, stream);
  if (args.dtype != DType::kBF16 || args.k % 8 != 0) {
    return launch_lora_shrink_plain(args, stream);
  }
  const int64_t items = int64_t{max_lora_tiles(args.max_rows, args.max_adapters)} * args.num_parts *
                        ceil_div(args.max_rank, kTileRanks) * lora_splits(args.k);
  prefer_shared_memory(lora_shrink_kernel);
  launch_kernel(lora_shrink_kernel, lora_blocks(items, kShrinkBlocks), kShrinkThreads, 0, stream,
                args);
}

}  // namespace foretoken::cuda
