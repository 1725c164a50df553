#pragma once
#include "kernels/cuda/attention_mma.cuh"
#include "kernels/cuda/attention_partials.cuh"
#include "kernels/cuda/attention_tile.cuh"

// How the teams of a grid share the attention of a step: every block finds the query tiles and what
// they read from the rows' slots and positions, cuts tiles that would take too long at split
// boundaries, and deals the jobs to teams so that each reads about the same.
namespace foretoken::cuda {

inline constexpr int kMostPlannedRows = 1024;
inline constexpr int kPlanThreads = 512;
inline constexpr int kWarpsInPlan = kPlanThreads / 32;

// The tiles of a step, in shared memory. A unit: kUnit KV positions of one KV head.
struct AttentionPlan {
  uint32_t linked[kMostPlannedRows / 32 + 3];  // after a zero: bit r, row r goes on from row r - 1
  int start[kMostPlannedRows + 1];             // units of the tiles before
  int partials[kMostPlannedRows];              // of the tiles before, in rows times splits
  int position[kMostPlannedRows];
  uint16_t first_row[kMostPlannedRows];
  uint8_t tokens[kMostPlannedRows];
  int3 totals[kWarpsInPlan];
  int num_tiles;

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

// What the host knows about the plan.
struct PlanShape {
  TileShape tile;
  int chunks;        // pairs of a KV head and a group of its query heads
  bool leaves_long;  // runs of more than kLongRun rows are another kernel's
  PartialSpace space;
};

// All threads of a block of kPlanThreads; ends with a barrier.
class PlanMaker {
 public:
  __device__ PlanMaker(AttentionPlan& plan, const AttentionArgs& args, const PlanShape& shape)
      : plan_(plan), args_(args), shape_(shape), thread_(threadIdx.y * 32 + threadIdx.x) {}

  __device__ void run() {
    const int live = min(args_.counts->num_rows, args_.max_rows);
    link_rows(live);
    __syncthreads();
    int3 totals{0, 0, 0};
    for (int row = thread_; row - thread_ < live; row += kPlanThreads) take_rows(row, live, totals);
    if (thread_ == 0) {
      plan_.num_tiles = totals.x;
      plan_.start[totals.x] = totals.y;
    }
    __syncthreads();
  }

 private:
  __device__ void link_rows(int live) const {
    for (int row = thread_; row - thread_ < args_.max_rows; row += kPlanThreads) {
      const bool follows = row > 0 && row < args_.max_rows && has_successor(args_, row - 1);
      const uint32_t bits = __ballot_sync(0xffffffffu, follows && row < live);
      if (threadIdx.x == 0) plan_.linked[row / 32 + 1] = bits;
    }
    if (thread_ == 0) {
      plan_.linked[0] = 0;
      plan_.linked[ceil_div(args_.max_rows, 32) + 1] = 0;
      plan_.linked[ceil_div(args_.max_rows, 32) + 2] = 0;
    }
  }

  // totals: tiles, units and partial results of the rows before, and afterwards with these.
  __device__ void take_rows(int row, int live, int3& totals) const {
    int tokens = 0;
    int3 mine{0, 0, 0};
    if (row < live) {
      const int before = plan_.before(row);
      const int after = plan_.after(row);
      const bool other = shape_.leaves_long && min(before, 32) + 1 + after > kLongRun;
      if (!other && before % shape_.tile.tokens == 0) tokens = min(after + 1, shape_.tile.tokens);
      if (other && shape_.space.capacity > 0 && blockIdx.x == 0) {
        shape_.space.rows()[row] = {-1, 0, 0, 0};
      }
    }
    const int position = tokens > 0 ? args_.positions[row] : 0;
    if (tokens > 0) {
      const int first = first_visible(args_, position);
      const int last = position + tokens - 1;
      const int splits = last / kAttentionSplit - first / kAttentionSplit + 1;
      mine = {1, last / kUnit - first / kUnit + 1, splits > kUncutSplits ? tokens * splits : 0};
    }
    int3 upto = mine;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int3 other{__shfl_up_sync(0xffffffffu, upto.x, offset),
                       __shfl_up_sync(0xffffffffu, upto.y, offset),
                       __shfl_up_sync(0xffffffffu, upto.z, offset)};
      if (static_cast<int>(threadIdx.x) >= offset) upto = sum(upto, other);
    }
    __syncthreads();
    if (threadIdx.x == 31) plan_.totals[threadIdx.y] = upto;
    __syncthreads();
    int3 base = totals;
    for (int warp = 0; warp < kWarpsInPlan; ++warp) {
      if (warp < static_cast<int>(threadIdx.y)) base = sum(base, plan_.totals[warp]);
      totals = sum(totals, plan_.totals[warp]);
    }
    if (tokens == 0) return;
    const int tile = base.x + upto.x - 1;
    plan_.start[tile] = base.y + upto.y - mine.y;
    plan_.partials[tile] = base.z + upto.z - mine.z;
    plan_.position[tile] = position;
    plan_.first_row[tile] = static_cast<uint16_t>(row);
    plan_.tokens[tile] = static_cast<uint8_t>(tokens);
  }

  __device__ static int3 sum(int3 a, int3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }

 public:
  static constexpr int kUncutSplits = 2;  // to cut so little costs more than it saves

 private:
  AttentionPlan& plan_;
  const AttentionArgs& args_;
  const PlanShape& shape_;
  const int thread_;
};

// A tile of one KV head, or consecutive splits of one.
struct AttentionJob {
  QueryTile tile;
  int first_unit;
  int last_unit;
  int first_split;  // of the tile
  int num_splits;   // of the tile
  int partials;     // place of the first row's partial results; -1: the tile is not cut
  bool leads;       // it tells where the tile's partial results are
};

// The jobs of one team, in order.
class JobWalk {
 public:
  // team: of num_teams in the grid.
  __device__ JobWalk(const AttentionPlan& plan, const AttentionArgs& args, const PlanShape& shape,
                     int team, int num_teams)
      : plan_(plan), args_(args), shape_(shape) {
    const int64_t total = int64_t{plan.start[plan.num_tiles]} * shape.chunks;
    const int64_t begin = total * team / num_teams;
    end_ = total * (team + 1) / num_teams;
    part_splits_ = static_cast<int>(total / (kLongestShare * kSplitUnits)) + 1;
    int low = 0;
    int high = plan.num_tiles;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (int64_t{plan.start[middle]} * shape.chunks <= begin ? low : high) = middle;
    }
    tile_ = low;
    if (plan.num_tiles == 0 || begin == end_) {
      tile_ = plan.num_tiles;
      return;
    }
    enter_tile();
    const int rest = static_cast<int>(begin - int64_t{plan.start[tile_]} * shape.chunks);
    chunk_ = rest / units_;
    part_ = min(rest % units_ / (part_splits_ * kSplitUnits), num_parts_ - 1);
    while (valid() && job_start() < begin) next();
  }

  __device__ bool valid() const { return tile_ < plan_.num_tiles && job_start() < end_; }

  __device__ void next() {
    if (++part_ < num_parts_) return;
    part_ = 0;
    if (++chunk_ < shape_.chunks) return;
    chunk_ = 0;
    if (++tile_ < plan_.num_tiles) enter_tile();
  }

  __device__ AttentionJob job() const {
    const int group = args_.num_heads / args_.kv.num_kv_heads;
    const int chunks = ceil_div(group, shape_.tile.max_heads);
    const int first_head = chunk_ % chunks * shape_.tile.max_heads;
    AttentionJob job;
    job.tile.first_row = plan_.first_row[tile_];
    job.tile.num_tokens = plan_.tokens[tile_];
    job.tile.position = plan_.position[tile_];
    job.tile.slot = args_.row_slot[job.tile.first_row];
    job.tile.kv_head = chunk_ / chunks;
    job.tile.first_head = job.tile.kv_head * group + first_head;
    job.tile.heads = min(shape_.tile.max_heads, group - first_head);
    job.tile.first_kv = first_visible(args_, job.tile.position);
    job.tile.last_kv = job.tile.position + job.tile.num_tokens - 1;
    job.first_split = job.tile.first_kv / kAttentionSplit;
    job.num_splits = job.tile.last_kv / kAttentionSplit - job.first_split + 1;
    const int begin = (job.first_split + part_ * part_splits_) * kSplitUnits;
    job.first_unit = max(job.tile.first_kv / kUnit, begin);
    job.last_unit = job.tile.last_kv / kUnit;
    job.partials = -1;
    if (num_parts_ > 1) {
      job.last_unit = min(job.last_unit, begin + part_splits_ * kSplitUnits - 1);
      job.partials = plan_.partials[tile_] * args_.num_heads;
    }
    job.leads = part_ == 0 && chunk_ == 0;
    return job;
  }

 private:
  // No job takes more than this share of all units: a team alone reads several times faster than
  // its part of the memory's bandwidth.
  static constexpr int kLongestShare = 1200;

  __device__ void enter_tile() {
    const int position = plan_.position[tile_];
    const int first = first_visible(args_, position);
    const int tokens = plan_.tokens[tile_];
    const int splits = (position + tokens - 1) / kAttentionSplit - first / kAttentionSplit + 1;
    units_ = plan_.start[tile_ + 1] - plan_.start[tile_];
    const bool fits = int64_t{plan_.partials[tile_] + tokens * splits} * args_.num_heads <=
                      shape_.space.long_begin;
    num_parts_ = splits > max(PlanMaker::kUncutSplits, part_splits_) && fits
                     ? ceil_div(splits, part_splits_)
                     : 1;
  }
  __device__ int64_t job_start() const {
    return int64_t{plan_.start[tile_]} * shape_.chunks + chunk_ * units_ +
           min(part_ * part_splits_ * kSplitUnits, units_ - 1);
  }

  const AttentionPlan& plan_;
  const AttentionArgs& args_;
  const PlanShape& shape_;
  int64_t end_;
  int part_splits_;
  int tile_;
  int chunk_ = 0;
  int part_ = 0;
  int units_ = 1;
  int num_parts_ = 1;
};

}  // namespace foretoken::cuda
