#include "kernels/attention/cuda/library/library_plan.cuh"

#include "kernels/attention/cuda/attention_tile.cuh"
#include "kernels/cuda/block_scan.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = kLibraryRows;
constexpr int kTileCost = 5;  // of a tile's beginning and end, in units

struct PlanMemory {
  int scratch[kThreads];
  int run_first[kThreads];      // row with which a run begins
  int first_row[kThreads + 1];  // of a tile
  int cost_end[kThreads];       // units and tile costs of all tiles up to this one
};

// One block, a row and then a tile for each thread; each function is called by all.
struct LibraryPlanner {
  const AttentionArgs& args;
  const LibraryShape& shape;
  const LibraryLists& lists;
  PlanMemory& memory;
  int live;
  int thread;
  int num_tiles = 0;

  __device__ void run() {
    find_tiles();
    deal();
  }

 private:
  __device__ int scan(int value) { return block_scan<kThreads>(value, memory.scratch); }

  // Tiles are counted from the beginning of their run.
  __device__ void find_tiles() {
    const bool is_live = thread < live;
    const bool begins_run = is_live && (thread == 0 || !has_successor(args, thread - 1));
    const int run = scan(begins_run ? 1 : 0) - 1;
    if (begins_run) memory.run_first[run] = thread;
    __syncthreads();
    const bool begins = is_live && (thread - memory.run_first[run]) % shape.tokens == 0;
    const int tile = scan(begins ? 1 : 0) - 1;
    num_tiles = memory.scratch[kThreads - 1];
    if (begins) memory.first_row[tile] = thread;
    if (is_live) lists.tile_of_row[thread] = tile;
    if (thread == 0) {
      memory.first_row[num_tiles] = live;
      *lists.num_tiles = num_tiles;
    }
    __syncthreads();
  }

  // Part p has the units and costs [p * share, (p + 1) * share) of all tiles, side by side.
  __device__ void deal() {
    const bool is_tile = thread < num_tiles;
    const int first = is_tile ? memory.first_row[thread] : live;
    const int last = is_tile ? memory.first_row[thread + 1] - 1 : 0;
    const int kv_len = is_tile ? args.positions[last] + 1 : 0;
    const int units = ceil_div(kv_len, kLibraryUnit);
    const int end = scan(is_tile ? units + kTileCost : 0);
    const int share = max(ceil_div(memory.scratch[kThreads - 1], shape.parts), 1);
    memory.cost_end[thread] = end;
    const int first_part = (end - units) / share;
    const int num_works = is_tile ? (end - 1) / share - first_part + 1 : 0;
    const int upto = scan(num_works);
    const int all = memory.scratch[kThreads - 1];
    const int place = scan(num_works > 1 ? num_works : 0) - (num_works > 1 ? num_works : 0);
    if (is_tile) {
      lists.first_row[thread] = first;
      lists.kv_len[thread] = kv_len;
      lists.num_works[thread] = num_works;
      lists.place[thread] = place;
    }
    if (thread == 0) lists.first_row[num_tiles] = live;
    for (int work = 0; work < num_works; ++work) {
      write_work(upto - num_works + work, all, {first, last + 1 - first, kv_len, units, end},
                 first_part + work, share, num_works > 1 ? place + work : -1);
    }
    if (is_tile) write_bounds(upto - num_works, num_works, first_part, share, all);
    if (thread == 0 && num_tiles == 0) set_bounds(0, shape.parts - 1, 0, 0);
    if (is_tile && thread + 1 == num_tiles) {
      set_bounds(first_part + num_works, shape.parts - 1, all, all);
    }
    if (thread == 0) lists.bounds[shape.chunks * shape.parts] = shape.chunks * all;
  }

  struct Dealt {
    int first;
    int rows;
    int kv_len;
    int units;
    int end;
  };

  __device__ void write_work(int work, int all, const Dealt& tile, int part, int share,
                             int place) const {
    const int before = tile.end - tile.units;
    const int begin = max(0, part * share - before);
    const int end = min(tile.units, (part + 1) * share - before);
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const int at = chunk * all + work;
      lists.work_tile[at] = thread;
      lists.work_first[at] = tile.first;
      lists.work_rows[at] = tile.rows;
      lists.work_pages[at] = args.row_slot[tile.first] * args.max_blocks;
      lists.work_len[at] = tile.kv_len;
      lists.work_query[at] = chunk * kLibraryQueries;
      lists.work_begin[at] = begin * kLibraryUnit;
      lists.work_end[at] = min(end * kLibraryUnit, tile.kv_len);
      lists.work_place[at] = place < 0 ? -1 : (chunk * shape.max_places + place) * kLibraryQueries;
    }
  }

  // Of the parts whose first work is one of this tile, and of those before that have none.
  __device__ void write_bounds(int base, int num_works, int first_part, int share, int all) const {
    const int last_before = thread == 0 ? -1 : (memory.cost_end[thread - 1] - 1) / share;
    set_bounds(last_before + 1, first_part, base, all);
    for (int work = 1; work < num_works; ++work) {
      set_bounds(first_part + work, first_part + work, base + work, all);
    }
  }

  __device__ void set_bounds(int first_part, int last_part, int work, int all) const {
    for (int part = first_part; part <= last_part; ++part) {
      for (int chunk = 0; chunk < shape.chunks; ++chunk) {
        lists.bounds[chunk * shape.parts + part] = chunk * all + work;
      }
    }
  }
};

__global__ void __launch_bounds__(kThreads, 1)
    library_plan_kernel(const __grid_constant__ AttentionArgs args,
                        const __grid_constant__ LibraryShape shape,
                        const __grid_constant__ LibraryLists lists) {
  __shared__ PlanMemory memory;
  wait_for_all_before();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < shape.chunks * shape.parts) lists.zeros[thread] = 0;
  LibraryPlanner{args, shape, lists, memory, min(args.counts->num_rows, args.max_rows), thread}
      .run();
}

__global__ void library_gather_kernel(const __grid_constant__ AttentionArgs args,
                                      const __grid_constant__ LibraryLists lists,
                                      const __grid_constant__ LibraryTiles tiles, int tokens) {
  wait_for_all_before();
  const int tile = static_cast<int>(blockIdx.x);
  const auto thread = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  const bool exists = tile < *lists.num_tiles;
  const int first = exists ? lists.first_row[tile] : 0;
  const int rows = exists ? lists.first_row[tile + 1] - first : 0;
  if (!args.repeats && tiles.pages != nullptr) {
    int32_t* pages = tiles.pages + int64_t{tile} * args.max_blocks;
    const int32_t* from = args.block_tables;
    if (exists) from += int64_t{args.row_slot[first]} * args.max_blocks;
    const int count = exists ? ceil_div(lists.kv_len[tile], args.kv.block_size) : 1;
    for (int i = thread; i < count; i += threads) pages[i] = exists ? from[i] : 0;
    if (!exists && thread == 0) lists.kv_len[tile] = 1;
  }
  if (tiles.q == nullptr || !exists) return;
  constexpr int kRowPieces = kLibraryDim * 2 / 16;
  const int have = rows * args.num_heads * kRowPieces;
  const int ahead = (tokens - rows) * args.num_heads * kRowPieces;
  const auto* from =
      static_cast<const uint4*>(args.q) + int64_t{first} * args.num_heads * kRowPieces;
  auto* to = reinterpret_cast<uint4*>(tiles.q) + int64_t{tile} * tiles.queries * kRowPieces;
  for (int i = thread; i < tiles.queries * kRowPieces; i += threads) {
    const int at = i - ahead;
    to[i] = at >= 0 && at < have ? from[at] : uint4{0, 0, 0, 0};
  }
}

}  // namespace

void launch_library_plan(const AttentionArgs& args, const LibraryRoom& room, cudaStream_t stream) {
  launch_kernel(library_plan_kernel, 1, kThreads, 0, stream, args, room.shape, room.lists);
}

void launch_library_gather(const AttentionArgs& args, const LibraryRoom& room,
                           cudaStream_t stream) {
  launch_kernel(library_gather_kernel, args.max_rows, 256, 0, stream, args, room.lists, room.tiles,
                room.shape.tokens);
}

}  // namespace foretoken::cuda
