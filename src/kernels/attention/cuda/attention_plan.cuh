#pragma once
#include "kernels/attention/cuda/attention_mma.cuh"
#include "kernels/attention/cuda/attention_partials.cuh"
#include "kernels/attention/cuda/attention_tile.cuh"

// How the teams of a grid share the attention of a step: every block finds the query tiles and what
// they read from the rows' slots and positions, cuts tiles that would take too long at split
// boundaries, and deals the jobs to teams so that each reads about the same.
namespace foretoken::cuda {

inline constexpr int kMaxPlannedRows = 1024;
inline constexpr int kMaxPlanWarps = 16;

// The tiles of a step, in shared memory. A unit: kUnit KV positions of one KV head.
struct AttentionPlan {
  LinkedRows<kMaxPlannedRows> runs;
  int start[kMaxPlannedRows + 1];  // units of the tiles before
  int partials[kMaxPlannedRows];   // of the tiles before, in rows times splits
  int position[kMaxPlannedRows];
  uint16_t first_row[kMaxPlannedRows];
  uint8_t tokens[kMaxPlannedRows];
  int3 totals[kMaxPlanWarps];
  int num_tiles;
};

// A tile of one KV head, or consecutive splits of one. The first job of a tile folds its splits,
// since they come first in every row; the others leave theirs. All do where a kernel joins them.
struct AttentionJob {
  QueryTile tile;
  int first_unit;
  int last_unit;
  int folded;      // the first split that has a partial result; those before are folded into it
  int num_splits;  // of the tile from that on
  int partials;    // place of the first row's partial results; -1: the tile is not cut
  bool folds;      // it leaves one result of all its splits
  bool leads;      // it tells where the tile's partial results are
};

// A team's job in device memory: ops that repeat one read them instead of making a plan.
struct alignas(16) JobRecord {
  static constexpr int kBlocks = 16;
  AttentionJob job;
  int count;            // in a team's first record: its jobs, kUnknown when they are too many
  int blocks[kBlocks];  // of the cache that the job's first units are in; -1: a unit has less
  static constexpr int kUnknown = -1;

  // In words of four bytes.
  static constexpr int kWords = 32;
  static constexpr int kCount = 15;
  static constexpr int kFirstBlock = 16;
};
inline constexpr int kMaxRecords = 16;  // of a team
static_assert(kMaxPlannedRows == AttentionArgs::kSyncRows && kMaxPlannedRows == kHeadRows);
static_assert(sizeof(JobRecord) == JobRecord::kWords * 4 &&
              sizeof(AttentionJob) == JobRecord::kCount * 4);

// What the host knows about the plan.
struct PlanShape {
  TileShape tile;
  int chunks;        // pairs of a KV head and a group of its query heads
  bool leaves_long;  // runs of more than kLongRun rows are another kernel's
  bool leaves_last;  // so are those that reach the last row, behind which there may be more
  PartialSpace space;
  JobRecord* records;  // [teams][kMaxRecords], or null
  bool repeats;        // an op before has written them
  double team_part;    // one over the number of teams
  bool joins;          // of the teams that share a tile's splits, the last one joins them
};

inline constexpr int kFewPlannedRows = 32;  // one warp plans them

// Tiles of so many splits are not cut: two parts of one cost more than they save, unless most
// multiprocessors have none.
__host__ __device__ inline int uncut_splits(const AttentionArgs& args) {
  constexpr int kFewest = 8;
  return args.max_rows <= kFewest ? 1 : 2;
}

// All threads of a block of so many warps, or the first warp alone; ends with a barrier of those.
template <int Warps>
class PlanMaker {
 public:
  __device__ PlanMaker(AttentionPlan& plan, const AttentionArgs& args, const PlanShape& shape)
      : plan_(plan), args_(args), shape_(shape), thread_(threadIdx.y * 32 + threadIdx.x) {}

  __device__ void run() {
    const int live = min(args_.counts->num_rows, args_.max_rows);
    link_rows(live);
    sync();
    int3 totals{0, 0, 0};
    for (int row = thread_; row - thread_ < live; row += kThreads) take_rows(row, live, totals);
    if (thread_ == 0) {
      plan_.num_tiles = totals.x;
      plan_.start[totals.x] = totals.y;
    }
    sync();
  }

 private:
  static constexpr int kThreads = Warps * 32;

  __device__ static void sync() {
    if constexpr (Warps == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  __device__ void link_rows(int live) const {
    for (int row = thread_; row - thread_ < args_.max_rows; row += kThreads) {
      const bool follows = row > 0 && row < args_.max_rows && has_successor(args_, row - 1);
      const uint32_t bits = __ballot_sync(0xffffffffu, follows && row < live);
      if (threadIdx.x == 0) plan_.runs.linked[row / 32 + 1] = bits;
    }
    if (thread_ == 0) {
      plan_.runs.linked[0] = 0;
      plan_.runs.linked[ceil_div(args_.max_rows, 32) + 1] = 0;
      plan_.runs.linked[ceil_div(args_.max_rows, 32) + 2] = 0;
    }
  }

  // totals: tiles, units and partial results of the rows before, and afterwards with these.
  __device__ void take_rows(int row, int live, int3& totals) const {
    int tokens = 0;
    int3 mine{0, 0, 0};
    if (row < live) {
      const int before = plan_.runs.before(row);
      const int after = plan_.runs.after(row);
      const bool is_long = shape_.leaves_long && min(before, 32) + 1 + after > kLongRun;
      const bool other = is_long || (shape_.leaves_last && row + after + 1 >= args_.max_rows);
      if (!other && before % shape_.tile.tokens == 0) tokens = min(after + 1, shape_.tile.tokens);
      if (other && shape_.space.capacity > 0 && blockIdx.x == 0) {
        shape_.space.rows()[row] = {-1, 0, 0, 0};
      }
    }
    const int position = tokens > 0 ? args_.positions[row] : 0;
    if (tokens > 0) {
      const int first = first_visible(args_, position);
      const int last = position + tokens - 1;
      const int splits = AttentionSplits::of(last) - AttentionSplits::of(first) + 1;
      mine = {1, last / kUnit - first / kUnit + 1,
              splits > uncut_splits(args_) ? tokens * splits : 0};
    }
    int3 upto = mine;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int3 other{__shfl_up_sync(0xffffffffu, upto.x, offset),
                       __shfl_up_sync(0xffffffffu, upto.y, offset),
                       __shfl_up_sync(0xffffffffu, upto.z, offset)};
      if (static_cast<int>(threadIdx.x) >= offset) upto = sum(upto, other);
    }
    sync();
    if (threadIdx.x == 31) plan_.totals[threadIdx.y] = upto;
    sync();
    int3 base = totals;
    for (int warp = 0; warp < Warps; ++warp) {
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

  AttentionPlan& plan_;
  const AttentionArgs& args_;
  const PlanShape& shape_;
  const int thread_;
};

// The jobs of one team, in order. The units of all tiles stand in a line: tile after tile, in each
// chunk after chunk. Teams have equal parts of it, whose ends are moved to the nearest split, or to
// the nearest end of a tile that is not cut.
class JobWalk {
 public:
  // team: of num_teams in the grid.
  __device__ JobWalk(const AttentionPlan& plan, const AttentionArgs& args, const PlanShape& shape,
                     int team, int num_teams)
      : plan_(plan),
        args_(args),
        shape_(shape),
        num_teams_(num_teams),
        total_(int64_t{plan.start[plan.num_tiles]} * shape.chunks),
        units_of_team_(static_cast<double>(total_) * shape.team_part) {
    const int64_t from = equal_share(team);
    const int64_t to = equal_share(team + 1);
    at_ = total_;
    end_ = total_;
    if (from >= total_) return;
    enter(from);
    const bool is_near = to < chunk_line_ + units_;  // as of few units, for which time counts
    if (is_near || to == total_) {
      end_ = is_near ? rounded(to) : total_;
    } else {
      enter(to);
      end_ = rounded(to);
      enter(from);
    }
    at_ = rounded(from);
    leave_ended_chunk();
  }

  __device__ bool valid() const { return at_ < end_; }

  __device__ void next() {
    at_ += job_units();
    leave_ended_chunk();
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
    const bool is_first = at_ == chunk_line_;
    const int first_end = shape_.joins ? first_job_end() : first_unit_ + 1;
    const bool cut = shape_.joins ? first_end < first_unit_ + units_ : is_shared();
    job.folded = split_of_unit(first_end - 1);
    job.num_splits = AttentionSplits::of(job.tile.last_kv) - job.folded + 1;
    job.first_unit = first_unit_ + static_cast<int>(at_ - chunk_line_);
    job.last_unit = job.first_unit + job_units() - 1;
    job.partials = cut ? plan_.partials[tile_] * args_.num_heads : -1;
    job.folds = is_first && (shape_.joins || !cut);
    job.leads = is_first && chunk_ == 0;
    return job;
  }

 private:
  __device__ int job_units() const {
    return static_cast<int>(min(chunk_line_ + units_, end_) - at_);
  }

  __device__ int64_t equal_share(int team) const {
    return team < num_teams_ ? static_cast<int64_t>(units_of_team_ * team) : total_;
  }
  // The first team whose equal share begins behind this place.
  __device__ int team_behind(int64_t line) const {
    const float near = __fdividef(static_cast<float>(line), static_cast<float>(units_of_team_));
    int team = max(static_cast<int>(near) - 1, 0);
    while (equal_share(team) <= line) ++team;
    return team;
  }

  // Goes to the tile and chunk of this place.
  __device__ void enter(int64_t at) {
    int low = 0;
    int high = plan_.num_tiles;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (int64_t{plan_.start[middle]} * shape_.chunks <= at ? low : high) = middle;
    }
    enter_tile(low);
    chunk_ = static_cast<int>(at - line_of_tile()) / units_;
    chunk_line_ = line_of_tile() + chunk_ * units_;
  }

  __device__ void enter_tile(int tile) {
    tile_ = tile;
    const int position = plan_.position[tile_];
    const int first = first_visible(args_, position);
    const int tokens = plan_.tokens[tile_];
    const int splits = AttentionSplits::of(position + tokens - 1) - AttentionSplits::of(first) + 1;
    const bool fits = int64_t{plan_.partials[tile_] + tokens * splits} * args_.num_heads <=
                      shape_.space.long_begin;
    may_cut_ = splits > uncut_splits(args_) && fits;
    first_unit_ = first / kUnit;
    units_ = plan_.start[tile_ + 1] - plan_.start[tile_];
  }
  __device__ int64_t line_of_tile() const { return int64_t{plan_.start[tile_]} * shape_.chunks; }

  __device__ void leave_ended_chunk() {
    if (!valid() || at_ < chunk_line_ + units_) return;
    chunk_line_ += units_;
    if (++chunk_ < shape_.chunks) return;
    chunk_ = 0;
    enter_tile(tile_ + 1);
  }

  // Where a share that would begin here begins, within the chunk and its ends.
  __device__ int64_t rounded(int64_t at) const {
    const int64_t rest = at - chunk_line_;
    if (rest <= 0) return chunk_line_;
    if (rest >= units_) return chunk_line_ + units_;
    const int unit = first_unit_ + static_cast<int>(rest);
    const int end = first_unit_ + units_;
    const int low = may_cut_ ? max(first_unit_, split_floor(unit)) : first_unit_;
    const int high = may_cut_ ? min(end, next_split(unit + 1)) : end;
    return chunk_line_ + (2 * unit <= low + high ? low : high) - first_unit_;
  }

  // The unit behind the chunk's first job.
  __device__ int first_job_end() const {
    if (at_ == chunk_line_) return first_unit_ + job_units();
    // What begins behind the middle of the first split moves to its end or farther.
    const int half = (min(units_, next_split(first_unit_ + 1) - first_unit_)) / 2;
    const int64_t at = equal_share(team_behind(chunk_line_ + half));
    return first_unit_ + static_cast<int>(rounded(at) - chunk_line_);
  }

  // Whether several teams may have parts of the tile's chunks: where a kernel of its own joins
  // rows, all of their heads must be left alike.
  __device__ bool is_shared() const {
    const int64_t line = line_of_tile();
    return may_cut_ && equal_share(team_behind(line)) < line + int64_t{units_} * shape_.chunks;
  }

  const AttentionPlan& plan_;
  const AttentionArgs& args_;
  const PlanShape& shape_;
  int num_teams_;
  int64_t total_;
  double units_of_team_;
  int64_t at_;   // of the job in the line
  int64_t end_;  // of the team's share
  int tile_ = 0;
  int chunk_ = 0;
  int64_t chunk_line_ = 0;  // where the chunk begins in the line
  int first_unit_ = 0;      // of the tile
  int units_ = 1;           // of the tile
  bool may_cut_ = false;
};

}  // namespace foretoken::cuda
