#pragma once
#include "kernels/attention/cuda/attention_codes.cuh"
#include "kernels/attention/cuda/long/attention_long_loader.cuh"

// The warps that fill the shared memory of the attention of long runs over codes of KvFormat::kFp8.
namespace foretoken::cuda {

// The tensor cores of sm_90a take keys and values from shared memory alone, so codes are widened on
// the way there: each of these warps has 16 positions of every unit, whose codes it reads a unit
// ahead. The first one deals the jobs, all copy queries.
template <int Dim>
struct LongWidener {
  using S = LongShape<Dim, false>;
  static constexpr int kQueryRows = LongTeam<false>::kQueryRows;
  static constexpr int kWarps = RunEntries::kUnitRuns;
  static constexpr int kChunks = Dim / 16;                 // of 16 codes
  static constexpr int kPieces = kLoadRun * kChunks / 32;  // chunks of a run that a lane has
  using Codes = uint4[kPieces];
  const AttentionArgs& args;
  char* ring_memory;
  char* queries;
  LongState<false>& state;
  int warp;
  int lane;
  RingPlace<LongTeam<false>::kStages> ring{};

  // entry: of the run; -1: no row sees any of it.
  __device__ void read(Codes& codes, const void* cache, int entry) const {
    const auto* from = static_cast<const uint4*>(cache) + int64_t{max(entry, 0)} * kChunks + lane;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) codes[i] = entry >= 0 ? __ldcg(from + i * 32) : uint4{};
  }

  // Stores 16 numbers at chunk 2 * `chunk` of a row of chunks: even ones, then odd ones. Lanes of
  // the second column begin with the odd ones, since both columns start in the same bank.
  __device__ static void widen(const uint4& codes, char* row, int row_in_eight, int chunk,
                               int column_bytes) {
    const WidenedCodes w[4] = {widen_codes(codes.x), widen_codes(codes.y), widen_codes(codes.z),
                               widen_codes(codes.w)};
    const uint4 even{w[0].even, w[1].even, w[2].even, w[3].even};
    const uint4 odd{w[0].odd, w[1].odd, w[2].odd, w[3].odd};
    const int column = chunk / 4;
    char* at = row + column * column_bytes;
    const int first = chunk % 4 * 2 + column;
    *reinterpret_cast<uint4*>(at + ((first ^ row_in_eight) << 4)) = column == 0 ? even : odd;
    *reinterpret_cast<uint4*>(at + ((first ^ 1 ^ row_in_eight) << 4)) = column == 0 ? odd : even;
  }

  // Fills the next stage when it is free: run_at bytes from its beginning, rows of 64 columns.
  __device__ void fill(const Codes& codes, int run_at, int column_bytes) {
    wait_barrier(&state.empty[ring.place], ring.parity ^ 1);
    char* run = ring_memory + ring.place * S::kUnitBytes + run_at;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int row = (lane + i * 32) / kChunks;
      widen(codes[i], run + row * 128, row % 8, (lane + i * 32) % kChunks, column_bytes);
    }
    fence_async_proxy();
    __syncwarp();
    if (lane == 0) arrive(&state.full[ring.place]);
    ring.advance();
  }

  __device__ void load_units(const LongJob& job) {
    RunEntries runs(args, job);
    Codes keys, values;
    int entry = runs.take(job.first_unit, warp);
    read(keys, args.kv.k, entry);
    read(values, args.kv.v, entry);
    for (int unit = job.first_unit; unit <= job.last_unit; ++unit) {
      entry = unit < job.last_unit ? runs.take(unit + 1, warp) : -1;
      fill(keys, warp * kLoadRun * 128, kUnit * 128);
      read(keys, args.kv.k, entry);
      fill(values, warp * kLoadRun * Dim * 2, kLoadRun * 128);
      read(values, args.kv.v, entry);
    }
  }

  __device__ void load_queries(const QueryTile& tile, char* to) const {
    for (int i = warp * 32 + lane; i < kQueryRows * kChunks; i += kWarps * 32) {
      const int m = i / kChunks;
      const int chunk = i % kChunks * 2;
      const int token = m / tile.heads;
      const int64_t head =
          int64_t{tile.first_row + token} * args.num_heads + tile.first_head + m % tile.heads;
      uint4 low{}, high{};
      if (token < tile.num_tokens) {
        const auto* from = static_cast<const uint4*>(args.q) + head * (Dim / 8) + chunk;
        low = from[0];
        high = from[1];
      }
      *reinterpret_cast<uint4*>(to + swizzled_chunk(kQueryRows, m, chunk)) = evens_of(low, high);
      *reinterpret_cast<uint4*>(to + swizzled_chunk(kQueryRows, m, chunk + 1)) = odds_of(low, high);
    }
    fence_async_proxy();
    __syncwarp();
  }

  // walk: in the first warp.
  __device__ void run(LongWalk* walk) {
    for (RingPlace<kLongPlaces> places;; places.advance()) {
      LongJob& job = state.jobs[places.place];
      if (walk != nullptr) {
        const bool more = walk->next();
        wait_barrier(&state.job_empty[places.place], places.parity ^ 1);
        if (!more) walk->job.tile.num_tokens = 0;
        if (lane == 0) {
          job = walk->job;
          arrive(&state.job_full[places.place]);
        }
      }
      wait_barrier(&state.job_full[places.place], places.parity);
      const bool ends = job.tile.num_tokens == 0;
      if (!ends) load_queries(job.tile, queries + places.place * S::kQueryBytes);
      if (lane == 0) arrive(&state.q_full[places.place]);
      if (ends) return;
      load_units(job);
      if (walk == nullptr) arrive(&state.job_empty[places.place]);
    }
  }
};

}  // namespace foretoken::cuda
