#pragma once
#include "kernels/attention/cuda/attention_fa3.cuh"
#include "kernels/attention/cuda/attention_tile.cuh"

// Who computes which query tile of the long runs: one block finds the runs from the rows and deals
// their tiles, those that read most first, each to the block that has least to read until then.
namespace foretoken::cuda {

inline constexpr int kFa3PlanThreads = 1024;
inline constexpr int kFa3Rows = 1 << 16;  // most that can be planned
inline constexpr int kFa3Runs = kFa3Rows / (kLongRun + 1);
inline constexpr int kFa3Tiles = kFa3Rows / 128 + kFa3Runs;
inline constexpr int kFa3LaneBlocks = 5;  // whose work a lane counts
inline constexpr int kFa3MostBlocks = kFa3LaneBlocks * 32 - 1;

struct Fa3Memory {
  uint32_t linked[kFa3Rows / 32 + 2];  // bit r: row r goes on from row r - 1
  int first_row[kFa3Runs];
  int num_rows[kFa3Runs];
  int first_tile[kFa3Runs];
  int cost[kFa3Tiles];
  uint16_t run[kFa3Tiles];
  uint16_t order[kFa3Tiles];  // tiles, the costliest first
  int num_runs;
  int num_tiles;
};

// One block of kFa3PlanThreads threads; each function is called by all of them.
struct Fa3Planner {
  // Tiles cost the KV tiles that they read, and this for their beginning and end.
  static constexpr int kTileCost = 2;

  const AttentionArgs& args;
  const Fa3Lists& lists;
  Fa3Memory& memory;
  int blocks;  // of FlashInfer's grid
  int live;
  int thread;
  int lane;

  __device__ void run() {
    if (thread == 0) memory.num_runs = memory.num_tiles = 0;
    link_rows();
    __syncthreads();
    find_runs();
    __syncthreads();
    measure_runs();
    __syncthreads();
    order_tiles();
    __syncthreads();
    if (thread < 32) deal();
    __syncthreads();
    write_lists();
  }

 private:
  __device__ void link_rows() const {
    const int rows = (live / 32 + 2) * 32;
    for (int row = thread; row < rows; row += kFa3PlanThreads) {
      const bool follows = row > 0 && row < live && has_successor(args, row - 1);
      const uint32_t bits = __ballot_sync(0xffffffffu, follows);
      if (lane == 0) memory.linked[row / 32] = bits;
    }
  }

  // Of rows row .. row + 31.
  __device__ uint32_t links_from(int row) const {
    if (row >= live) return 0;
    return __funnelshift_r(memory.linked[row / 32], memory.linked[row / 32 + 1], row % 32);
  }

  __device__ void find_runs() const {
    static_assert(kLongRun == 32);
    for (int row = thread; row < live; row += kFa3PlanThreads) {
      if ((links_from(row) & 1) != 0 || links_from(row + 1) != 0xffffffffu) continue;
      memory.first_row[atomicAdd(&memory.num_runs, 1)] = row;
    }
  }

  // A full warp asks for the rows of one run.
  __device__ int count_rows(int first) const {
    for (int count = 1;; count += 32 * 32) {
      const uint32_t links = links_from(first + count + lane * 32);
      const int full = leading_ones(links == 0xffffffffu);
      if (full == 32) continue;
      const uint32_t rest = __shfl_sync(0xffffffffu, links, full);
      return count + full * 32 + __ffs(static_cast<int>(~rest)) - 1;
    }
  }

  __device__ void measure_runs() const {
    const int tile_rows = fa3_tile_rows(args.kv.head_dim);
    for (int run = thread / 32; run < memory.num_runs; run += kFa3PlanThreads / 32) {
      const int first = memory.first_row[run];
      const int rows = count_rows(first);
      const int tiles = ceil_div(rows, tile_rows);
      int begin = 0;
      if (lane == 0) {
        begin = atomicAdd(&memory.num_tiles, tiles);
        memory.num_rows[run] = rows;
        memory.first_tile[run] = begin;
      }
      begin = __shfl_sync(0xffffffffu, begin, 0);
      const int before = args.positions[first];
      for (int tile = lane; tile < tiles; tile += 32) {
        const int seen = before + min((tile + 1) * tile_rows, rows);
        memory.cost[begin + tile] = ceil_div(seen, kFa3KvTile) + kTileCost;
        memory.run[begin + tile] = static_cast<uint16_t>(run);
      }
    }
  }

  __device__ void order_tiles() const {
    for (int tile = thread; tile < memory.num_tiles; tile += kFa3PlanThreads) {
      const int cost = memory.cost[tile];
      int rank = 0;
      for (int other = 0; other < memory.num_tiles; ++other) {
        const int another = memory.cost[other];
        rank += another > cost || (another == cost && other < tile);
      }
      memory.order[rank] = static_cast<uint16_t>(tile);
    }
  }

  // The first warp. A lane counts the work of blocks lane, lane + 32, ...: cost << 8 | block, so
  // that the smallest number names the block. Costs that no longer fit deal unevenly, not wrongly.
  __device__ void deal() const {
    uint32_t loads[kFa3LaneBlocks];
    int counts[kFa3LaneBlocks] = {};
#pragma unroll
    for (int i = 0; i < kFa3LaneBlocks; ++i) {
      const int block = i * 32 + lane;
      loads[i] = block < blocks ? static_cast<uint32_t>(block) : 0xffffffffu;
    }
    int work = 0;
    for (int rank = 0; rank < memory.num_tiles; ++rank) {
      const uint32_t cost = static_cast<uint32_t>(memory.cost[memory.order[rank]]) << 8;
      for (const int end = work + args.num_heads; work < end; ++work) {
        uint32_t least = loads[0];
#pragma unroll
        for (int i = 1; i < kFa3LaneBlocks; ++i) least = min(least, loads[i]);
        least = __reduce_min_sync(0xffffffffu, least);
#pragma unroll
        for (int i = 0; i < kFa3LaneBlocks; ++i) {
          if (loads[i] != least) continue;
          lists.places[work] = static_cast<uint32_t>(counts[i]++) << 8 | (least & 255);
          loads[i] += cost;
        }
      }
    }
    write_bounds(counts);
  }

  __device__ void write_bounds(const int (&counts)[kFa3LaneBlocks]) const {
    int before = 0;
#pragma unroll
    for (int i = 0; i < kFa3LaneBlocks; ++i) {
      int upto = counts[i];
#pragma unroll
      for (int offset = 1; offset < 32; offset *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, upto, offset);
        if (lane >= offset) upto += other;
      }
      const int block = i * 32 + lane;
      if (block <= blocks) lists.bounds[block] = before + upto - counts[i];
      before += __shfl_sync(0xffffffffu, upto, 31);
    }
  }

  __device__ void write_lists() const {
    const int works = memory.num_tiles * args.num_heads;
    for (int work = thread; work < works; work += kFa3PlanThreads) {
      const int tile = memory.order[work / args.num_heads];
      const int run = memory.run[tile];
      const int first = memory.first_row[run];
      const uint32_t place = lists.places[work];
      const int at = lists.bounds[place & 255] + static_cast<int>(place >> 8);
      lists.tile[at] = tile - memory.first_tile[run];
      lists.head[at] = work % args.num_heads;
      lists.first_row[at] = first;
      lists.num_rows[at] = memory.num_rows[run];
      lists.kv_begin[at] = args.row_slot[first] * args.max_blocks;
      lists.kv_len[at] = args.positions[first] + memory.num_rows[run];
    }
  }
};

}  // namespace foretoken::cuda
