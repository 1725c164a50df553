#pragma once
#include "kernels/attention/cuda/attention_latent_codes.cuh"
#include "kernels/attention/cuda/attention_latent_plan.cuh"

// The warps that fill the shared memory of latent attention.
namespace foretoken::cuda {

// Fills the ring of keys: its rank's chunks of 64 elements, each with all positions of a unit. Of
// entries of KvFormat::kFp8 it copies what LatentWidener turns into them.
template <int Ranks, bool Codes>
struct LatentKeyLoader {
  using S = LatentShape<Ranks>;
  static constexpr int kPages = kUnit / kLatentPage;
  const AttentionArgs& args;
  const CUtensorMap& map;
  LatentMemory<Ranks> memory;
  LatentState<Ranks>& state;
  int rank;
  int* record;  // of the cluster, if it is to be written, or null
  bool kept;    // the plan has the first entries
  LatentCodeCopies<Ranks> codes;
  RingPlace<S::kStages> ring{};

  // First entry of page number `page` of the job's sequence; -1: no row sees any of it.
  __device__ int entry_of(const LatentJob& job, int first, int page) const {
    const int begin = page * kLatentPage;
    if (begin > min(job.last_kv(), (job.last_unit + 1) * kUnit - 1)) return -1;
    if (begin + kLatentPage <= first) return -1;
    return static_cast<int>(kv_entry(args, job.slot, begin, 0));
  }

  // entry: of page `lane` of the unit, in the first lanes.
  __device__ void load_unit(int entry) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int chunk = lane / kPages;
    const int page = lane % kPages;
    const int from = __shfl_sync(0xffffffffu, entry, page);
    const int pages = __popc(__ballot_sync(0xffffffffu, lane < kPages && entry >= 0));
    wait_barrier(state.empty + ring.place, ring.parity ^ 1);
    if constexpr (Codes) {
      codes.start(ring.place, from, pages);
      ring.advance();
      return;
    }
    uint64_t* full = state.full + ring.place;
    const int chunks = S::chunks_of(rank);
    if (lane == 0) arrive_expecting(full, pages * chunks * kLatentPage * kChunkBytes);
    __syncwarp();
    if (chunk < chunks && from >= 0) {
      copy_box(memory.stage(ring.place) + chunk * kUnitChunk + page * kLatentPage * kChunkBytes,
               &map, int3{0, from, rank * S::kValueChunks + chunk}, full, evict_normal_policy());
    }
    ring.advance();
  }

  // next: the entries of the first pages.
  __device__ void load(const LatentJob& job, int next) {
    constexpr int kAhead = 32 / kPages;  // units whose pages a warp looks up at once
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int first = first_visible(args, job.position);
    for (int begin = job.first_unit; begin <= job.last_unit; begin += kAhead) {
      const int entries = next;
      next = entry_of(job, first, (begin + kAhead) * kPages + lane);
      for (int i = 0; i < kAhead && begin + i <= job.last_unit; ++i) {
        load_unit(__shfl_sync(0xffffffffu, entries, i * kPages + lane % kPages));
      }
    }
  }

  __device__ void run(const LatentPlan& plan) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = 0; i < plan.num_jobs; ++i) {
      const LatentJob& job = plan.jobs[i];
      int first = plan.entries[lane];
      if (i > 0 || !kept) {
        first = entry_of(job, first_visible(args, job.position), job.first_unit * kPages + lane);
      }
      if (i == 0) {
        if (record != nullptr) record[4 + lane] = first;
        wait_for_all_before();
      }
      load(job, first);
      if (i == 0) let_next_start();
    }
  }
};

// Copies the queries of each job: chunk after chunk, all queries of each.
template <int Ranks>
struct LatentQueryLoader {
  using S = LatentShape<Ranks>;
  static constexpr int kBox = 16;  // queries of a copy
  const AttentionArgs& args;
  const CUtensorMap& map;
  LatentMemory<Ranks> memory;
  LatentState<Ranks>& state;
  int rank;

  __device__ void load(const LatentJob& job, int columns, int place, int lane) const {
    const int boxes = columns / kBox;
    const int chunks = S::chunks_of(rank);
    if (lane == 0) arrive_expecting(state.q_full + place, chunks * columns * kChunkBytes);
    __syncwarp();
    for (int i = lane; i < boxes * chunks; i += 32) {
      const int chunk = i / boxes;
      const int from = i % boxes * kBox;
      copy_box(memory.queries() + LatentQueryPlaces<Ranks>::offset(place) +
                   (chunk * columns + from) * kChunkBytes,
               &map,
               int3{0, job.first_row * args.num_heads + job.first_head + from,
                    rank * S::kValueChunks + chunk},
               state.q_full + place, evict_first_policy());
    }
  }

  __device__ void run(const LatentPlan& plan) {
    wait_for_all_before();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    LatentQueryPlaces<Ranks> places;
    for (int i = 0; i < plan.num_jobs; ++i) {
      const LatentJob& job = plan.jobs[i];
      const int columns = latent_columns(job.queries());
      const int first = places.first(columns);
      const int last = places.last(columns);
      wait_barrier(state.q_empty + first, places.parity(first) ^ 1);
      if (last != first) {
        wait_barrier(state.q_empty + last, places.parity(last) ^ 1);
        if (lane == 0) arrive(state.q_full + last);
      }
      load(job, columns, first, lane);
      places.advance(columns);
    }
  }
};

}  // namespace foretoken::cuda
