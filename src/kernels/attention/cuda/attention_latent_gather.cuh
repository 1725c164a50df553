#pragma once
#include "kernels/attention/cuda/attention_latent.cuh"
#include "kernels/attention/cuda/attention_latent_plan.cuh"

namespace foretoken::cuda {

// Fills the ring of keys where fewer than kLatentPage positions lie side by side, as where rows
// attend to chosen positions, whose blocks have one entry each. Two warps copy 16 bytes a thread to
// where the copy engine's 128-byte swizzle would put them: each has 32 positions of a unit, and
// eight lanes copy 128 bytes of one.
template <int Ranks>
struct LatentGatherer {
  using S = LatentShape<Ranks>;
  static constexpr int kThreads = kUnit;
  static constexpr int kPieces = kChunkBytes / 16;
  static constexpr int kAtOnce = 32 / kPieces;  // positions of a warp
  const AttentionArgs& args;
  LatentMemory<Ranks> memory;
  LatentState<Ranks>& state;
  int rank;
  int thread;  // of kThreads
  RingPlace<S::kStages> ring{};

  __device__ int lane() const { return thread % 32; }

  // Entry of the thread's position of a unit; -1: no row sees it.
  __device__ int entry_of(const LatentJob& job, int first, int unit) const {
    const int position = unit * kUnit + thread;
    if (position < first || position > job.last_kv()) return -1;
    return static_cast<int>(kv_entry(args, job.slot, position, 0));
  }

  __device__ void load_unit(int entry) {
    const int piece = lane() % kPieces;
    const char* keys =
        static_cast<const char*>(args.kv.k) + rank * (S::kValueChunks * kChunkBytes) + piece * 16;
    wait_barrier(state.empty + ring.place, ring.parity ^ 1);
    char* stage = memory.stage(ring.place) + (thread - lane()) * kChunkBytes;
#pragma unroll
    for (int i = 0; i < 32 / kAtOnce; ++i) {
      const int row = i * kAtOnce + lane() / kPieces;
      const int from = __shfl_sync(0xffffffffu, entry, row);
      if (from < 0) continue;
      const char* key = keys + int64_t{from} * (kLatentDim * 2);
      char* to = stage + row * kChunkBytes + ((piece ^ row % 8) << 4);
#pragma unroll
      for (int chunk = 0; chunk < S::kValueChunks; ++chunk) {
        copy16_async(to + chunk * kUnitChunk, key + chunk * kChunkBytes, true);
      }
      if (rank == Ranks - 1) {
        copy16_async(to + S::kValueChunks * kUnitChunk, key + S::kValueChunks * kChunkBytes, true);
      }
    }
    arrive_after_copies(state.full + ring.place);
    ring.advance();
  }

  __device__ void run(const LatentPlan& plan) {
    for (int i = 0; i < plan.num_jobs; ++i) {
      const LatentJob& job = plan.jobs[i];
      const int first = first_visible(args, job.position);
      int next = entry_of(job, first, job.first_unit);
      if (i == 0) wait_for_all_before();
      for (int unit = job.first_unit; unit <= job.last_unit; ++unit) {
        const int entry = next;
        next = entry_of(job, first, unit + 1);
        load_unit(entry);
      }
      if (i == 0) let_next_start();
    }
  }
};

}  // namespace foretoken::cuda
