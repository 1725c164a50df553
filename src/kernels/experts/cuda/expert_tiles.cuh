#pragma once
#include "kernels/activation_math.h"
#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/experts/expert_gemm.h"

namespace foretoken::cuda {

// Some entries of an expert times some columns of its matrix: what a block computes at once.
struct ExpertTile {
  int expert;
  int column_tile;
  int first_entry;  // in ExpertLists::entries
  int num_entries;
};

// The work of a step, from the counts that the device has. Tiles of the same columns follow one
// another, so that the weight is read from memory once.
struct ExpertTiles {
  const int32_t* begins;  // as of ExpertLists
  const int* first;       // [count + 1] in shared memory: tiles of rows before each expert
  int count;
  int tile_rows;
  int column_tiles;

  // Fills `first`; every thread of the block calls it.
  __device__ static void count_tiles(const ExpertLists& lists, int tile_rows, int* first) {
    for (int i = threadIdx.x; i <= lists.count; i += blockDim.x) first[i] = lists.begins[i];
    __syncthreads();
    if (threadIdx.x < 32) sum_tiles(lists.count, tile_rows, first);
    __syncthreads();
  }

  // The same by one warp. All is asked for before any of it is used.
  __device__ static void count_tiles_by_warp(const ExpertLists& lists, int tile_rows, int* first) {
    constexpr int kAtOnce = 4;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int base = lane; base <= lists.count; base += 32 * kAtOnce) {
      int begins[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) begins[j] = lists.begins[min(base + j * 32, lists.count)];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) first[min(base + j * 32, lists.count)] = begins[j];
    }
    __syncwarp();
    sum_tiles(lists.count, tile_rows, first);
    __syncwarp();
  }

  // By a warp, of which a lane takes neighbours: `first` holds begins before, and tiles after.
  __device__ static void sum_tiles(int count, int tile_rows, int* first) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int each = ceil_div(count, 32);
    const int from = min(lane * each, count), to = min(from + each, count);
    const int end = first[to];  // which the next lane overwrites
    int own = 0;
    for (int i = from; i < to; ++i) own += ceil_div(first[i + 1] - first[i], tile_rows);
    int sum = sum_of_lanes_before(own);
    __syncwarp();
    for (int i = from; i < to; ++i) {
      const int tiles = ceil_div((i + 1 < to ? first[i + 1] : end) - first[i], tile_rows);
      first[i] = sum;
      sum += tiles;
    }
    __syncwarp();
    if (lane == 31) first[count] = sum;
  }

  __device__ int64_t size() const { return int64_t{first[count]} * column_tiles; }

  __device__ ExpertTile at(int64_t index) const {
    int low = 0, high = count;  // the expert is in [low, high)
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (int64_t{first[middle]} * column_tiles <= index ? low : high) = middle;
    }
    const int tiles = first[low + 1] - first[low];
    const auto unit = static_cast<int>(index - int64_t{first[low]} * column_tiles);
    const int entry = begins[low] + unit % tiles * tile_rows;
    return {low, unit / tiles, entry, min(tile_rows, begins[low + 1] - entry)};
  }

  // The same where the tiles of an expert have about as many entries each, a multiple of 8.
  __device__ ExpertTile even(int64_t index) const {
    ExpertTile tile = at(index);
    const int begin = begins[tile.expert], count = begins[tile.expert + 1] - begin;
    const int tiles = first[tile.expert + 1] - first[tile.expert];
    const int size = ceil_div(ceil_div(count, tiles), 8) * 8;
    const int from = (tile.first_entry - begin) / tile_rows * size;
    return {tile.expert, tile.column_tile, begin + from, min(size, count - from)};
  }
};

// Blocks that have something to do at most, of tiles of so many rows and columns.
inline int max_tiles(const ExpertGemmArgs& args, int tile_rows, int column_tiles) {
  const int64_t entries = int64_t{args.max_rows} * args.lists.top_k;
  const int64_t experts = entries < args.lists.count ? entries : args.lists.count;
  return static_cast<int>((experts + entries / tile_rows) * column_tiles);
}

// The row of x of an entry.
__device__ inline int64_t source_row(const ExpertGemmArgs& args, int entry) {
  return args.by_entry != 0 ? entry : entry / args.lists.top_k;
}

// Eight elements of x times what their entry weighs, rounded.
__device__ inline uint4 scaled_chunk(const uint4& chunk, float scale) {
  __nv_bfloat16 values[8];
  memcpy(values, &chunk, sizeof values);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    values[i] = __float2bfloat16_rn(__fmul_rn(__bfloat162float(values[i]), scale));
  }
  uint4 scaled;
  memcpy(&scaled, values, sizeof scaled);
  return scaled;
}

// Stores a product (with its gate: the gated product) of a column of an expert.
template <class T>
struct ExpertStore {
  const ExpertGemmArgs& args;

  __device__ void plain(int expert, int entry, int column, float sum) const {
    if (args.bias != nullptr) sum = __fadd_rn(sum, args.bias[int64_t{expert} * args.n + column]);
    static_cast<T*>(args.y)[int64_t{entry} * args.n + column] = from_float<T>(sum);
  }
  __device__ void gated(int expert, int entry, int column, float gate, float up) const {
    const int64_t size = args.n / 2;
    if (args.bias != nullptr) {
      const int64_t at = expert * size + column;
      gate = __fadd_rn(gate, args.bias[at]);
      up = __fadd_rn(up, args.bias[args.lists.count * size + at]);
    }
    const float value = has_gate_numbers(args.activation)
                            ? activation_math::numbered_gated(args.activation, args.clamp, gate, up)
                            : activation_math::gated(args.activation, gate, up);
    static_cast<T*>(args.y)[entry * size + column] = from_float<T>(value);
  }
};

}  // namespace foretoken::cuda
