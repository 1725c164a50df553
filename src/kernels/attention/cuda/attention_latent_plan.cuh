#pragma once
#include "kernels/attention/cuda/attention_latent.cuh"
#include "kernels/attention/cuda/attention_tile.cuh"

// How clusters share the latent attention of a step: every block finds the tiles and what they
// read from the rows' slots and positions, and keeps the jobs of its cluster.
namespace foretoken::cuda {

struct LatentPlan {
  // What ops that repeat one read from device memory instead of making a plan: up to kKeptJobs
  // jobs, and where the first pages of the first one are.
  static constexpr int kUnknown = -1;  // as num_jobs: there are more jobs
  static constexpr int kKeptJobs = 4;
  static constexpr int kPages = 32;
  static constexpr int kKeptWords = 4 + kPages + kKeptJobs * sizeof(LatentJob) / 4;
  int num_jobs;
  int unused[3];
  int entries[kPages];  // as of LatentKeyLoader::entry_of
  LatentJob jobs[kLatentJobs];

  uint32_t linked[kLatentRows / 32 + 3];  // after a zero: bit r, row r goes on from row r - 1
  int2 sums[kLatentThreads / 32];
  int total_units;

  // Rows before `row` in its run, and behind it up to 32.
  __device__ int before(int row) const {
    int count = 0;
    int joined = 32;
    while (joined == 32) {
      const int at = row - count;
      joined = __clz(~__funnelshift_l(linked[at / 32], linked[at / 32 + 1], 31 - at % 32));
      count += joined;
    }
    return count;
  }
  __device__ int after(int row) const {
    const int at = row + 1;
    const uint32_t bits = ~__funnelshift_r(linked[at / 32 + 1], linked[at / 32 + 2], at % 32);
    return bits == 0 ? 32 : __ffs(static_cast<int>(bits)) - 1;
  }
};

// All threads of a block. False: nothing was kept.
__device__ inline bool read_kept(LatentPlan& plan, const int* record) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < LatentPlan::kKeptWords) {
    reinterpret_cast<int*>(&plan)[thread] = __ldcg(record + thread);
  }
  __syncthreads();
  return plan.num_jobs != LatentPlan::kUnknown;
}
// The same for what is to be kept; entries are the loader's.
__device__ inline void keep_plan(const LatentPlan& plan, int* record) {
  constexpr int kJobs = 4 + LatentPlan::kPages;
  const int thread = static_cast<int>(threadIdx.x);
  const int count = plan.num_jobs;
  if (thread == 0) record[0] = count <= LatentPlan::kKeptJobs ? count : LatentPlan::kUnknown;
  if (thread >= kJobs && thread < LatentPlan::kKeptWords) {
    record[thread] = reinterpret_cast<const int*>(&plan)[thread];
  }
}

// All threads of a block.
class LatentPlanner {
 public:
  __device__ LatentPlanner(LatentPlan& plan, const AttentionArgs& args, const LatentLaunch& launch,
                           int cluster, int clusters)
      : plan_(plan),
        args_(args),
        launch_(launch),
        cluster_(cluster),
        clusters_(clusters),
        thread_(static_cast<int>(threadIdx.x)) {}

  // Ends with a barrier.
  __device__ void run() {
    const int rest = min(args_.counts->num_rows, args_.max_rows) - launch_.first_row;
    const int live = min(rest, launch_.rows);
    link_rows(live);
    if (thread_ == 0) plan_.total_units = 0;
    __syncthreads();
    Tile tiles[kRounds];
    for (int i = 0; i < kRounds; ++i) {
      tiles[i] = tile_of(thread_ + i * kLatentThreads, live);
      const int units = __reduce_add_sync(0xffffffffu, tiles[i].units());
      if (thread_ % 32 == 0 && units > 0) atomicAdd(&plan_.total_units, units);
    }
    __syncthreads();
    const int64_t units = int64_t{plan_.total_units} * launch_.chunks;
    if (!deal(tiles, static_cast<int>(units / clusters_) + 1)) deal(tiles, INT32_MAX / 2);
  }

 private:
  static constexpr int kRounds = kLatentRows / kLatentThreads;

  // Without tokens: there is none.
  struct Tile {
    int tokens = 0;
    int row = 0;
    int position = 0;
    int first_unit = 0;
    int last_unit = -1;
    int parts = 0;

    __device__ int units() const { return last_unit + 1 - first_unit; }
    __device__ int first_split() const { return LatentSplits::of(first_unit); }
    __device__ int num_splits() const { return LatentSplits::of(last_unit) + 1 - first_split(); }
    // First split of a part.
    __device__ int bound(int part) const { return first_split() + part * num_splits() / parts; }
    // Partial results of a tile that is cut: the first part leaves one, others one a split.
    __device__ int results() const {
      return parts == 1 ? 0 : 1 + first_split() + num_splits() - bound(1);
    }
  };

  __device__ void link_rows(int live) const {
    for (int row = thread_; row < kLatentRows; row += kLatentThreads) {
      const bool follows =
          row > 0 && row < live && has_successor(args_, launch_.first_row + row - 1);
      const uint32_t bits = __ballot_sync(0xffffffffu, follows);
      if (thread_ % 32 == 0) plan_.linked[row / 32 + 1] = bits;
    }
    if (thread_ == 0) {
      plan_.linked[0] = 0;
      plan_.linked[kLatentRows / 32 + 1] = 0;
      plan_.linked[kLatentRows / 32 + 2] = 0;
    }
  }

  __device__ Tile tile_of(int row, int live) const {
    Tile tile;
    if (row >= live || plan_.before(row) % launch_.max_tokens != 0) return tile;
    tile.tokens = min(plan_.after(row) + 1, launch_.max_tokens);
    tile.row = row + launch_.first_row;
    tile.position = args_.positions[tile.row];
    tile.first_unit = first_visible(args_, tile.position) / kUnit;
    tile.last_unit = (tile.position + tile.tokens - 1) / kUnit;
    return tile;
  }

  __device__ int blocks_of(const Tile& tile) const {
    const int queries = min(launch_.max_heads, args_.num_heads) * tile.tokens;
    return tile.results() * (latent_columns(queries) / LatentSpace::kQueries);
  }

  // Cuts tiles of more than about `share` units. False: their partial results have no room.
  __device__ bool deal(Tile (&tiles)[kRounds], int share) {
    int2 before[kRounds];  // jobs and blocks
    int2 all{0, 0};
    for (int i = 0; i < kRounds; ++i) {
      Tile& tile = tiles[i];
      tile.parts = tile.tokens == 0 ? 0 : 1;
      if (tile.tokens > 0 && tile.units() > share + share / 4) {
        tile.parts = min((tile.units() + share - 1) / share, tile.num_splits());
      }
      int2 mine{0, 0};
      if (tile.tokens > 0) mine = {tile.parts * launch_.chunks, blocks_of(tile) * launch_.chunks};
      before[i] = scan(mine, all);
    }
    if (all.y > launch_.space.capacity) return false;
    for (int i = 0; i < kRounds; ++i) {
      if (tiles[i].tokens > 0) emit(tiles[i], before[i], all.x);
    }
    if (thread_ == 0) {
      plan_.num_jobs = all.x > cluster_ ? (all.x - 1 - cluster_) / clusters_ + 1 : 0;
    }
    __syncthreads();
    return true;
  }

  // What the threads before have, with `all` of earlier rounds, to which all of this is added.
  __device__ int2 scan(int2 mine, int2& all) const {
    int2 upto = mine;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int2 other{__shfl_up_sync(0xffffffffu, upto.x, offset),
                       __shfl_up_sync(0xffffffffu, upto.y, offset)};
      if (thread_ % 32 >= offset) upto = {upto.x + other.x, upto.y + other.y};
    }
    __syncthreads();
    if (thread_ % 32 == 31) plan_.sums[thread_ / 32] = upto;
    __syncthreads();
    int2 base = all;
    for (int warp = 0; warp < kLatentThreads / 32; ++warp) {
      const int2 sum = plan_.sums[warp];
      if (warp < thread_ / 32) base = {base.x + sum.x, base.y + sum.y};
      all = {all.x + sum.x, all.y + sum.y};
    }
    return {base.x + upto.x - mine.x, base.y + upto.y - mine.y};
  }

  // Jobs are dealt from the last, since late rows of a prompt see most; neighbours, which read the
  // same, run at the same time.
  __device__ void emit(const Tile& tile, int2 before, int all) const {
    const int blocks = blocks_of(tile);
    for (int i = 0; i < tile.parts * launch_.chunks; ++i) {
      const int number = all - 1 - (before.x + i);
      if (number % clusters_ != cluster_ || number / clusters_ >= kLatentJobs) continue;
      const int part = i / launch_.chunks;
      const int chunk = i % launch_.chunks;
      LatentJob job;
      job.first_row = tile.row;
      job.position = tile.position;
      job.slot = args_.row_slot[tile.row];
      job.tokens = tile.tokens;
      job.first_head = chunk * launch_.max_heads;
      job.heads = min(launch_.max_heads, args_.num_heads - job.first_head);
      job.first_unit = max(tile.first_unit, LatentSplits::begin(tile.bound(part)));
      job.last_unit = min(tile.last_unit, LatentSplits::begin(tile.bound(part + 1)) - 1);
      job.place = tile.parts > 1 ? before.y + chunk * blocks : -1;
      job.splits = tile.results();
      job.split = part == 0 ? 0 : 1 + tile.bound(part) - tile.bound(1);
      plan_.jobs[number / clusters_] = job;
    }
  }

  LatentPlan& plan_;
  const AttentionArgs& args_;
  const LatentLaunch& launch_;
  const int cluster_;
  const int clusters_;
  const int thread_;
};

}  // namespace foretoken::cuda
