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

  // What jobs there would be with a share, before groups of query heads multiply them.
  struct Trial {
    int jobs;
    int large;    // of more than a third of the share
    int longest;  // in units
  };
  static constexpr int kShares = 8;
  Trial trials[kShares];

  LinkedRows<kLatentRows> runs;
  int2 sums[kLatentThreads / 32];
  int total_units;
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
    if (thread_ < kShares) plan_.trials[thread_] = {};
    __syncthreads();
    Tile tiles[kRounds];
    for (int i = 0; i < kRounds; ++i) {
      tiles[i] = tile_of(thread_ + i * kLatentThreads, live);
      const int units = __reduce_add_sync(0xffffffffu, tiles[i].units());
      if (thread_ % 32 == 0 && units > 0) atomicAdd(&plan_.total_units, units);
    }
    __syncthreads();
    const int64_t units = int64_t{plan_.total_units} * launch_.chunks;
    const int even = static_cast<int>(units / clusters_) + 1;
    for (int i = 0; i < kRounds; ++i) {
      if (__any_sync(0xffffffffu, tiles[i].tokens > 0)) try_shares(tiles[i], even);
    }
    __syncthreads();
    if (!deal(tiles, best_share(even))) deal(tiles, kWhole);
  }

 private:
  static constexpr int kRounds = kLatentRows / kLatentThreads;
  static constexpr int kShares = LatentPlan::kShares;
  static constexpr int kWhole = INT32_MAX / 4;  // a share of more units than any tile has

  // Without tokens: there is none.
  struct Tile {
    int tokens = 0;
    int row = 0;
    int position = 0;
    int first_unit = 0;
    int last_unit = -1;
    int share = kWhole;  // about the units of a part
    int parts = 0;

    __device__ int units() const { return last_unit + 1 - first_unit; }
    // Last unit of the part that begins with `unit`: whole splits, as many as the share has room
    // for, and at least one. No small rest is left alone.
    __device__ int end_of(int unit) const {
      if (last_unit - unit < share + share / 4) return last_unit;
      const int bound = LatentSplits::floor(unit + share);
      const int next = LatentSplits::floor(unit) + LatentSplits::width(unit);
      return min(max(bound, next) - 1, last_unit);
    }
    __device__ bool is_large(int units) const { return units > share / 3; }
    // Partial results of a tile that is cut: the first part leaves one, others one a split.
    __device__ int results() const {
      return parts == 1 ? 0
                        : 1 + LatentSplits::of(last_unit) - LatentSplits::of(end_of(first_unit));
    }
  };

  // Shares that are tried: from a little below an even one up to twice as many units.
  __device__ static int share_of(int even, int number) {
    return (even * (number < 6 ? 7 + number : number * 4 - 10) + 7) / 8;
  }

  // Counts what the jobs of a warp's tiles would be with each share.
  __device__ void try_shares(Tile tile, int even) const {
    for (int i = 0; i < kShares; ++i) {
      tile.share = share_of(even, i);
      int jobs = 0;
      int large = 0;
      int longest = 0;
      for (int unit = tile.first_unit; unit <= tile.last_unit; ++jobs) {
        const int next = tile.end_of(unit) + 1;
        longest = max(longest, next - unit);
        large += tile.is_large(next - unit) ? 1 : 0;
        unit = next;
      }
      jobs = __reduce_add_sync(0xffffffffu, jobs);
      large = __reduce_add_sync(0xffffffffu, large);
      longest = __reduce_max_sync(0xffffffffu, longest);
      if (thread_ % 32 != 0) continue;
      atomicAdd(&plan_.trials[i].jobs, jobs);
      atomicAdd(&plan_.trials[i].large, large);
      atomicMax(&plan_.trials[i].longest, longest);
    }
  }

  // The share whose busiest cluster has least to do: large jobs take turns of the clusters.
  __device__ int best_share(int even) const {
    constexpr int kJobUnits = 2;  // that starting and ending one costs
    int best = INT32_MAX;
    int share = even;
    for (int i = 0; i < kShares; ++i) {
      const LatentPlan::Trial& trial = plan_.trials[i];
      const int turns = max((trial.large * launch_.chunks + clusters_ - 1) / clusters_, 1);
      const int jobs = max((trial.jobs * launch_.chunks + clusters_ - 1) / clusters_, turns);
      const int mean = even + trial.jobs * launch_.chunks * kJobUnits / clusters_;
      const int cost = max(turns * trial.longest + jobs * kJobUnits, mean);
      if (cost <= best) share = share_of(even, i);
      best = min(best, cost);
    }
    return share;
  }

  __device__ void link_rows(int live) const {
    for (int row = thread_; row < kLatentRows; row += kLatentThreads) {
      const bool follows =
          row > 0 && row < live && has_successor(args_, launch_.first_row + row - 1);
      const uint32_t bits = __ballot_sync(0xffffffffu, follows);
      if (thread_ % 32 == 0) plan_.runs.linked[row / 32 + 1] = bits;
    }
    if (thread_ == 0) {
      plan_.runs.linked[0] = 0;
      plan_.runs.linked[kLatentRows / 32 + 1] = 0;
      plan_.runs.linked[kLatentRows / 32 + 2] = 0;
    }
  }

  __device__ Tile tile_of(int row, int live) const {
    Tile tile;
    if (row >= live || plan_.runs.before(row) % launch_.max_tokens != 0) return tile;
    tile.tokens = min(plan_.runs.after(row) + 1, launch_.max_tokens);
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

  // Cuts tiles into parts of about `share` units. False: their partial results have no room.
  __device__ bool deal(Tile (&tiles)[kRounds], int share) {
    int2 jobs[kRounds], all_jobs{0, 0};  // large and small ones of the tiles before
    int2 blocks[kRounds], all_blocks{0, 0};
    for (int i = 0; i < kRounds; ++i) {
      Tile& tile = tiles[i];
      tile.share = share;
      tile.parts = 0;
      int large = 0;
      for (int unit = tile.first_unit; unit <= tile.last_unit; ++tile.parts) {
        const int next = tile.end_of(unit) + 1;
        large += tile.is_large(next - unit) ? 1 : 0;
        unit = next;
      }
      jobs[i] = scan({large * launch_.chunks, (tile.parts - large) * launch_.chunks}, all_jobs);
      blocks[i] = scan({tile.tokens > 0 ? blocks_of(tile) * launch_.chunks : 0, 0}, all_blocks);
    }
    if (all_blocks.x > launch_.space.capacity) return false;
    for (int i = 0; i < kRounds; ++i) {
      if (tiles[i].tokens > 0) emit(tiles[i], jobs[i], blocks[i].x, all_jobs);
    }
    if (thread_ == 0) {
      const int all = all_jobs.x + all_jobs.y;
      plan_.num_jobs = all > cluster_ ? (all - 1 - cluster_) / clusters_ + 1 : 0;
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

  // Large jobs are dealt first, and both kinds from the last, since late rows of a prompt see most;
  // neighbours, which read the same, run at the same time. before, all: large and small jobs.
  __device__ void emit(const Tile& tile, int2 before, int place, int2 all) const {
    const int blocks = blocks_of(tile);
    const int first_end = LatentSplits::of(tile.end_of(tile.first_unit));
    int2 next{all.x - 1 - before.x, all.x + all.y - 1 - before.y};
    for (int unit = tile.first_unit; unit <= tile.last_unit;) {
      const int last = tile.end_of(unit);
      for (int chunk = 0; chunk < launch_.chunks; ++chunk) {
        const int number = tile.is_large(last + 1 - unit) ? next.x-- : next.y--;
        if (number % clusters_ != cluster_ || number / clusters_ >= kLatentJobs) continue;
        LatentJob job;
        job.first_row = tile.row;
        job.position = tile.position;
        job.slot = args_.row_slot[tile.row];
        job.tokens = tile.tokens;
        job.first_head = chunk * launch_.max_heads;
        job.heads = min(launch_.max_heads, args_.num_heads - job.first_head);
        job.first_unit = unit;
        job.last_unit = last;
        job.place = tile.parts > 1 ? place + chunk * blocks : -1;
        job.splits = tile.results();
        job.split = unit == tile.first_unit ? 0 : LatentSplits::of(unit) - first_end;
        plan_.jobs[number / clusters_] = job;
      }
      unit = last + 1;
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
