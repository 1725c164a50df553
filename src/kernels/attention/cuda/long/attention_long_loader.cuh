#pragma once
#include "kernels/attention/cuda/long/attention_long.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/cuda/wgmma.cuh"

// The warps that fill the shared memory of the attention of long runs.
namespace foretoken::cuda {

// Where the runs of a sequence's KV head begin in the cache, for 32 runs at a time and 32 ahead.
struct RunEntries {
  static constexpr int kUnitRuns = kUnit / kLoadRun;
  const AttentionArgs& args;
  const LongJob& job;
  int first;  // run
  int mine;   // of run first + lane; -1: no row sees any of it
  int next;

  __device__ RunEntries(const AttentionArgs& args, const LongJob& job)
      : args(args), job(job), first(job.first_unit * kUnitRuns), mine(find(0)), next(find(32)) {}

  __device__ int find(int ahead) const {
    const int begin = (first + ahead + static_cast<int>(threadIdx.x % 32)) * kLoadRun;
    const QueryTile& tile = job.tile;
    if (begin > tile.last_kv || begin + kLoadRun <= tile.first_kv) return -1;
    return static_cast<int>(kv_entry(args, tile.slot, begin, tile.kv_head));
  }

  // Units come one after the other.
  __device__ void go_to(int unit) {
    if (unit * kUnitRuns != first + 32) return;
    mine = next;
    first += 32;
    next = find(32);
  }
  // Of run number i of the unit.
  __device__ int take(int unit, int i) {
    go_to(unit);
    return __shfl_sync(0xffffffffu, mine, unit * kUnitRuns - first + i);
  }
  __device__ void take(int unit, int (&entries)[kUnitRuns]) {
    go_to(unit);
#pragma unroll
    for (int i = 0; i < kUnitRuns; ++i) {
      entries[i] = __shfl_sync(0xffffffffu, mine, unit * kUnitRuns - first + i);
    }
  }
};

// Fills every second stage of the ring, K or V, by the copy engine. One warp.
template <int Dim, bool Wide>
struct LongKvLoader {
  using S = LongShape<Dim, Wide>;
  static constexpr int kStages = LongTeam<Wide>::kStages;
  static constexpr int kColumns = Dim / 64;
  static constexpr int kRunBytes = kLoadRun * Dim * 2;
  const AttentionArgs& args;
  const CUtensorMap& map;
  char* ring_memory;
  LongState<Wide>& state;
  RingPlace<kStages> ring{};
  int landed = 0;  // parity

  __device__ char* stage() const { return ring_memory + ring.place * S::kUnitBytes; }

  // One lane calls start(i, entry) for each run that is seen; `barrier` counts their bytes.
  template <class Start>
  __device__ static void copy(const int (&entries)[RunEntries::kUnitRuns], uint64_t* barrier,
                              const Start& start) {
    int bytes = 0;
#pragma unroll
    for (const int entry : entries) bytes += entry >= 0 ? kRunBytes : 0;
    if (!elect_lane()) return;
    arrive_expecting(barrier, bytes);
#pragma unroll
    for (int i = 0; i < RunEntries::kUnitRuns; ++i) {
      if (entries[i] >= 0) start(i, entries[i]);
    }
  }

  // Each column of 64 has all rows of the unit.
  __device__ void copy_keys(const int (&entries)[RunEntries::kUnitRuns], uint64_t* barrier) {
    copy(entries, barrier, [&](int i, int entry) {
#pragma unroll
      for (int column = 0; column < kColumns; ++column) {
        copy_box(stage() + (column * kUnit + i * kLoadRun) * 128, &map, int3{0, entry, column},
                 barrier, evict_normal_policy());
      }
    });
  }

  // Each run has all columns.
  __device__ void copy_values(const int (&entries)[RunEntries::kUnitRuns], uint64_t* barrier) {
    copy(entries, barrier, [&](int i, int entry) {
      copy_box(stage() + i * kRunBytes, &map, int3{0, entry, 0}, barrier, evict_normal_policy());
    });
  }

  // Positions that no row sees have weight 0, but what lies there may be no number.
  __device__ void clear_unseen(const QueryTile& tile, int begin) {
    for (int i = threadIdx.x % 32; i < kUnit * 8; i += 32) {
      const int row = i / 8;
      if (begin + row >= tile.first_kv && begin + row <= tile.last_kv) continue;
      char* run = stage() + row / kLoadRun * kRunBytes + row % kLoadRun * 128 + i % 8 * 16;
#pragma unroll
      for (int column = 0; column < kColumns; ++column) {
        *reinterpret_cast<uint4*>(run + column * kLoadRun * 128) = uint4{};
      }
    }
    fence_async_proxy();
    __syncwarp();
  }

  __device__ void wait_for_stage() { wait_barrier(&state.empty[ring.place], ring.parity ^ 1); }

  // Calls fill(unit, its entries) for units [unit, end) when the unit's stage is free.
  template <class Fill>
  __device__ void load(RunEntries& runs, int unit, int end, const Fill& fill) {
    for (; unit < end; ++unit) {
      int entries[RunEntries::kUnitRuns];
      runs.take(unit, entries);
      wait_barrier(&state.empty[ring.place], ring.parity ^ 1);
      fill(unit, entries);
      ring.advance();
      ring.advance();
    }
  }

  __device__ void load_keys(RunEntries& runs, int unit, int end) {
    load(runs, unit, end, [&](int, const int(&entries)[RunEntries::kUnitRuns]) {
      copy_keys(entries, &state.full[ring.place]);
    });
  }

  __device__ void load_values(const LongJob& job) {
    RunEntries runs(args, job);
    const int end = job.last_unit + 1;
    load(runs, job.first_unit, end, [&](int unit, const int(&entries)[RunEntries::kUnitRuns]) {
      const int begin = unit * kUnit;
      uint64_t* full = &state.full[ring.place];
      if (begin >= job.tile.first_kv && begin + kUnit - 1 <= job.tile.last_kv) {
        copy_values(entries, full);
        return;
      }
      copy_values(entries, &state.landed);
      wait_barrier(&state.landed, landed);
      landed ^= 1;
      clear_unseen(job.tile, begin);
      if (threadIdx.x % 32 == 0) arrive(full);
    });
  }

  // The job behind this one is looked for, and told, once this one's first units are asked for.
  __device__ void run_keys(LongWalk walk) {
    RingPlace<kLongPlaces> places;
    bool more = walk.next();
    tell(walk.job, more, places);
    while (more) {
      const LongJob& job = state.jobs[places.place];
      const int end = job.last_unit + 1;
      const int ahead = min(job.first_unit + kStages / 2, end);
      RunEntries runs(args, job);
      load_keys(runs, job.first_unit, ahead);
      places.advance();
      more = walk.next();
      tell(walk.job, more, places);
      load_keys(runs, ahead, end);
    }
  }

  __device__ void tell(LongJob job, bool is_one, const RingPlace<kLongPlaces>& places) {
    if (!is_one) job.tile.num_tokens = 0;
    wait_barrier(&state.job_empty[places.place], places.parity ^ 1);
    if (threadIdx.x % 32 == 0) {
      state.jobs[places.place] = job;
      arrive(&state.job_full[places.place]);
    }
    __syncwarp();
  }

  __device__ void run_values() {
    ring.advance();
    for (RingPlace<kLongPlaces> places;; places.advance()) {
      wait_barrier(&state.job_full[places.place], places.parity);
      const LongJob& job = state.jobs[places.place];
      if (job.tile.num_tokens == 0) return;
      load_values(job);
      arrive(&state.job_empty[places.place]);
    }
  }
};

// The warps that copy the queries of each job.
template <int Dim, bool Wide>
struct LongQueryLoader {
  using Team = LongTeam<Wide>;
  static constexpr int kChunks = Dim / 8;
  const AttentionArgs& args;
  char* queries;
  LongState<Wide>& state;
  int thread;
  int free = 1;  // parity

  __device__ void load(const QueryTile& tile, char* to) {
    for (int i = thread; i < Team::kQueryRows * kChunks; i += kQueryLoaders * 32) {
      const int m = i / kChunks;
      const int token = m / tile.heads;
      const bool valid = token < tile.num_tokens;
      const int64_t head = int64_t{tile.first_row + (valid ? token : 0)} * args.num_heads +
                           tile.first_head + m % tile.heads;
      copy16_async(to + swizzled_chunk(Team::kQueryRows, m, i % kChunks),
                   static_cast<const __nv_bfloat16*>(args.q) + head * Dim + i % kChunks * 8, valid);
    }
    commit_copies();
    wait_copies<0>();
    fence_async_proxy();
  }

  // Where the queries of the job at `place` go, once it is free.
  __device__ char* free_place(int place) {
    if constexpr (Wide) {
      wait_barrier(&state.q_empty, free);
      free ^= 1;
      return queries;
    } else {
      return queries + place * LongShape<Dim, Wide>::kQueryBytes;
    }
  }

  __device__ void run() {
    for (RingPlace<kLongPlaces> places;; places.advance()) {
      wait_barrier(&state.job_full[places.place], places.parity);
      const QueryTile tile = state.jobs[places.place].tile;
      if (tile.num_tokens > 0) load(tile, free_place(places.place));
      arrive(&state.job_empty[places.place]);
      __syncwarp();
      if (thread % 32 == 0) arrive(&state.q_full[places.place]);
      if (tile.num_tokens == 0) return;
    }
  }
};

}  // namespace foretoken::cuda
