#pragma once
#include "kernels/attention/cuda/attention_mma.cuh"
#include "kernels/attention/cuda/attention_partials.cuh"
#include "kernels/attention/cuda/attention_tile.cuh"
#include "kernels/cuda/bulk_copy.cuh"

// What a block of the attention of long runs shares, and the order in which blocks take tiles.
namespace foretoken::cuda {

inline constexpr int kQueryLoaders = 2;  // warps, behind one that copies keys and one for values
inline constexpr int kLoadRun = 16;      // positions of a copy; every block has a multiple of it
inline constexpr int kLongPlaces = 2;    // jobs, one at work and one that is prepared

// Who works in a block. Wide: a third warpgroup computes, so that each key and value that is copied
// meets more queries; there is no room then for the queries of a second job, nor for the sums of
// the splits so far in registers.
template <bool Wide>
struct LongTeam {
  static constexpr int kGroups = Wide ? 3 : 2;  // warpgroups that compute, 64 query rows each
  static constexpr int kQueryRows = kGroups * 64;
  static constexpr int kReaders = kGroups * 4;  // warps
  static constexpr int kThreads = (kReaders + 2 + kQueryLoaders) * 32;
  // Threads that look at a job: all but the warp that copies keys, which writes it.
  static constexpr int kJobReaders = kThreads - 32;
  static constexpr int kStages = Wide ? 5 : 8;  // units of K or V in the ring
  static constexpr int kQueryPlaces = Wide ? 1 : kLongPlaces;
  static constexpr int kReaderRegisters = Wide ? 152 : 216;
  static constexpr int kLoaderRegisters = Wide ? 56 : 72;
};

// Tiles of so many query rows that the op's rows may make.
inline int long_tiles(const AttentionArgs& args, int query_rows) {
  const TileShape shape = tiles_for(args, query_rows);
  return head_chunks(args, shape) * ceil_div(args.max_rows, shape.tokens);
}

// A tile, or the splits of it that a block takes.
struct LongJob {
  QueryTile tile;  // without tokens: the end
  int first_unit;
  int last_unit;
  int part;
  int folded;  // the last split of the first part; -1: the tile is not cut
  bool tells;  // where the partial results lie

  // The first part folds its own splits, since they come first in every row; the others leave
  // theirs.
  __device__ bool folds() const { return folded < 0 || part == 0; }
};

// The shared memory: the ring, the queries and, if Wide, the sums of the splits so far.
template <int Dim, bool Wide>
struct LongShape {
  using Team = LongTeam<Wide>;
  static constexpr int kUnitBytes = kUnit * Dim * 2;
  static constexpr int kQueryBytes = Team::kQueryRows * Dim * 2;
  static constexpr int kQueriesAt = Team::kStages * kUnitBytes;
  static constexpr int kSumsAt = kQueriesAt + Team::kQueryPlaces * kQueryBytes;
  // The start is rounded.
  static constexpr int kBytes = kSumsAt + (Wide ? Team::kQueryRows * Dim * 4 : 0) + 1024;
};

template <bool Wide>
struct LongState {
  using Team = LongTeam<Wide>;
  LongJob jobs[kLongPlaces];
  uint64_t job_full[kLongPlaces], job_empty[kLongPlaces];
  uint64_t q_full[kLongPlaces];
  uint64_t full[Team::kStages], empty[Team::kStages];
  uint64_t landed;   // values that are to be cleared in part
  uint64_t q_empty;  // the only place for queries, if Wide

  // Warps that copy the queries, and that fill a stage.
  __device__ void init(int query_loaders, int fillers) {
    for (int i = 0; i < kLongPlaces; ++i) {
      init_barrier(job_full + i, 1);
      init_barrier(job_empty + i, Team::kJobReaders);
      init_barrier(q_full + i, query_loaders);
    }
    for (int i = 0; i < Team::kStages; ++i) {
      init_barrier(full + i, fillers);
      init_barrier(empty + i, Team::kReaders);
    }
    init_barrier(&landed, 1);
    if constexpr (Wide) init_barrier(&q_empty, Team::kReaders);
    publish_barriers();
  }
};

// Address of chunk c of row r in a tile of `rows` rows: see swizzled_tile.
__device__ inline uint32_t swizzled_chunk(int rows, int r, int c) {
  return c / 8 * rows * 128 + r * 128 + ((c % 8 ^ r % 8) << 4);
}

// The jobs of this block, by a full warp. Windows of rows are counted from the last, which sees
// most in a long prompt. A block claims the next one by AttentionArgs::sync when it has asked for
// the first keys of one; without it they are dealt out, and every second round runs backwards, so
// that the blocks' sums are alike.
struct LongWalk {
  const AttentionArgs& args;
  const LongCut& cut;
  TileShape shape;
  TileWalk tiles;
  LongJob job{};
  int round = 0;
  int chunks;

  __device__ LongWalk(const AttentionArgs& args, const LongCut& cut, const TileShape& shape)
      : args(args),
        cut(cut),
        shape(shape),
        tiles{args, min(args.counts->num_rows, args.max_rows), shape, 0, 0, 0},
        chunks(head_chunks_on_device()) {}

  // False after the last.
  __device__ bool next() {
    do {
      tiles.next();
      while (tiles.tile.num_tokens == 0) {
        if (!take_window()) return false;
        tiles.next();
      }
    } while (!take_part());
    return true;
  }

 private:
  __device__ int head_chunks_on_device() const {
    return args.kv.num_kv_heads * ceil_div(args.num_heads / args.kv.num_kv_heads, shape.max_heads);
  }

  // The next window that may have a long run.
  __device__ bool take_window() {
    const int windows = ceil_div(tiles.live, shape.tokens);
    const int items = windows * chunks * cut.parts;
    for (;;) {
      const int item = args.sync != nullptr ? claim_item(items) : deal_item(items);
      if (item < 0) return false;
      job.part = item % cut.parts;
      tiles.head_chunk = item / cut.parts % chunks;
      tiles.row = (windows - 1 - item / cut.parts / chunks) * shape.tokens;
      tiles.end = min(tiles.row + shape.tokens, tiles.live);
      if (may_have_long_run(args, tiles.row, tiles.end, tiles.live)) return true;
      tiles.row = tiles.end;
    }
  }

  __device__ int deal_item(int items) {
    const int blocks = static_cast<int>(gridDim.x);
    const int block = static_cast<int>(blockIdx.x);
    while (round * blocks < items) {
      const int item = round * blocks + (round % 2 == 0 ? block : blocks - 1 - block);
      ++round;
      if (item < items) return item;
    }
    return -1;
  }

  // The last block to find nothing leaves the two words as they were.
  __device__ int claim_item(int items) {
    const bool leads = threadIdx.x % 32 == 0;
    const int blocks = static_cast<int>(gridDim.x);
    int item = static_cast<int>(blockIdx.x);
    if (round++ > 0) {
      if (leads) item = blocks + static_cast<int>(atomicAdd(args.sync, 1));
      item = __shfl_sync(0xffffffffu, item, 0);
    }
    if (item < items) return item;
    if (leads && atomicAdd(args.sync + 1, 1) == gridDim.x - 1) args.sync[0] = args.sync[1] = 0;
    return -1;
  }

  // Which of the tile's splits this part takes: so many consecutive ones. False: none.
  __device__ bool take_part() {
    const QueryTile& tile = job.tile = tiles.tile;
    job.first_unit = tile.first_kv / kUnit;
    job.last_unit = tile.last_kv / kUnit;
    job.tells = tiles.head_chunk == 0;
    const int begin = split_floor(job.first_unit);
    const int each = ceil_div(job.last_unit + 1 - begin, cut.parts);
    job.folded = split_of_unit(begin + each - 1);
    const int last = split_of_unit(job.last_unit);
    if (job.folded == last || last - job.folded + 1 > cut.splits) {
      job.folded = -1;
      return job.part == 0;
    }
    if (job.part > 0) job.first_unit = next_split(begin + job.part * each);
    job.last_unit = min(job.last_unit, next_split(begin + (job.part + 1) * each) - 1);
    return job.first_unit <= job.last_unit;
  }
};

}  // namespace foretoken::cuda
