#pragma once
#include "kernels/attention/cuda/attention_codes.cuh"
#include "kernels/attention/cuda/attention_latent.cuh"
#include "kernels/attention/cuda/attention_latent_plan.cuh"

// Latent attention over entries of KvFormat::kFp8. The tensor cores take keys from shared memory
// and as bfloat16: so the codes of a unit land in the upper half of the place in the ring where its
// values will lie, their scales at its beginning, and two warps widen them from there, the lower
// half first. The elements that are as of kPlain land where they belong.
namespace foretoken::cuda {

struct LatentCodeMaps {
  CUtensorMap codes;
  CUtensorMap scales;
  CUtensorMap rest;
};

template <int Ranks>
struct LatentCodes {
  using S = LatentShape<Ranks>;
  static constexpr int kChunkCodes = kUnit * 64;  // bytes of a chunk before it is widened
  static constexpr int kPageCodes = kLatentPage * 64;
  static constexpr int kEntryScales = kLatentValues / kLatentGroup * 4;  // bytes

  LatentMemory<Ranks> memory;

  __device__ char* chunk(int place, int i) const {
    return memory.stage(place) + S::kValueChunks * kChunkCodes + i * kChunkCodes;
  }
  __device__ char* scales(int place) const { return memory.stage(place); }
};

// Counts what lands.
template <int Ranks>
struct LatentLanding {
  uint64_t landed[LatentShape<Ranks>::kStages];

  __device__ void init() {
    for (uint64_t& barrier : landed) init_barrier(&barrier, 1);
    publish_barriers();
  }
};

// Starts the copies of a unit, by a warp.
template <int Ranks>
struct LatentCodeCopies {
  using S = LatentShape<Ranks>;
  using C = LatentCodes<Ranks>;
  static constexpr int kPages = kUnit / kLatentPage;
  const LatentCodeMaps& maps;
  C codes;
  LatentLanding<Ranks>& landing;
  int rank;

  __device__ bool is_last() const { return rank == Ranks - 1; }
  __device__ int page_bytes() const {
    return S::kValueChunks * C::kPageCodes + kLatentPage * C::kEntryScales +
           (is_last() ? kLatentPage * kChunkBytes : 0);
  }

  // The place is free. entry: the first of page number lane % kPages; -1: nobody sees it. pages:
  // that are seen.
  __device__ void start(int place, int entry, int pages) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) arrive_expecting(landing.landed + place, pages * page_bytes());
    __syncwarp();
    const int parts = S::kValueChunks + (is_last() ? 2 : 1);
    for (int part = lane / kPages; part < parts && entry >= 0; part += 32 / kPages) {
      copy(place, entry, part, lane % kPages);
    }
    __syncwarp();
  }

 private:
  // part: a chunk of codes, the scales, or the rest.
  __device__ void copy(int place, int entry, int part, int page) const {
    uint64_t* landed = landing.landed + place;
    if (part < S::kValueChunks) {
      copy_box(codes.chunk(place, part) + page * C::kPageCodes, &maps.codes,
               (rank * S::kValueChunks + part) * 64, entry, landed);
    } else if (part == S::kValueChunks) {
      copy_box(codes.scales(place) + page * kLatentPage * C::kEntryScales, &maps.scales,
               latent_scales_at(kLatentValues), entry, landed);
    } else {
      char* chunk = codes.memory.stage(place) + S::kValueChunks * kUnitChunk;
      copy_box(chunk + page * kLatentPage * kChunkBytes, &maps.rest, 0, entry, landed);
    }
  }
};

// The two warps that widen: each thread has a position.
template <int Ranks>
struct LatentWidener {
  using S = LatentShape<Ranks>;
  using C = LatentCodes<Ranks>;
  static constexpr int kPieces = 4;  // of 16 codes, of a position's chunk
  static constexpr int kGroups = S::kValueChunks * 64 / kLatentGroup;
  using Pieces = uint4[kPieces];
  LatentState<Ranks>& state;
  C codes;
  LatentLanding<Ranks>& landing;
  int rank;
  int thread;
  RingPlace<S::kStages> ring{};

  __device__ static void sync() { asm volatile("bar.sync 3, %0;" ::"n"(kUnit) : "memory"); }

  // Number of the thread's i-th piece: an order in which eight threads read, and write, different
  // banks.
  __device__ int piece(int i) const {
    const int pair = thread / 2 % 4;
    return ((pair ^ pair / 2) % 2 * 2 + pair / 2) ^ i;
  }

  __device__ void read(Pieces& pieces, int chunk) const {
    const char* from = codes.chunk(ring.place, chunk) + thread * 64;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      pieces[i] = *reinterpret_cast<const uint4*>(from + piece(i) * 16);
    }
  }

  // Two numbers times the scale of their group.
  __device__ static uint32_t scale_pair(float low, float high, float scale) {
    return pack_bf16(__fmul_rn(low, scale), __fmul_rn(high, scale));
  }
  __device__ static float low_of(uint32_t pair) { return __uint_as_float(pair << 16); }
  __device__ static float high_of(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }
  // Four codes, in order.
  __device__ static uint2 scale_codes(uint32_t four, float scale) {
    const WidenedCodes w = widen_codes(four);
    return {scale_pair(low_of(w.even), low_of(w.odd), scale),
            scale_pair(high_of(w.even), high_of(w.odd), scale)};
  }

  __device__ void widen(const Pieces& pieces, int chunk, float scale) const {
    char* row = codes.memory.stage(ring.place) + chunk * kUnitChunk + thread * kChunkBytes;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const uint2 a = scale_codes(pieces[i].x, scale), b = scale_codes(pieces[i].y, scale);
      const uint2 c = scale_codes(pieces[i].z, scale), d = scale_codes(pieces[i].w, scale);
      const int at = piece(i) * 2 ^ thread % 8;
      *reinterpret_cast<uint4*>(row + (at << 4)) = uint4{a.x, a.y, b.x, b.y};
      *reinterpret_cast<uint4*>(row + ((at ^ 1) << 4)) = uint4{c.x, c.y, d.x, d.y};
    }
  }

  __device__ void widen_unit() {
    wait_barrier(landing.landed + ring.place, ring.parity);
    float scales[kGroups];
    const char* from = codes.scales(ring.place) + thread * C::kEntryScales + rank * kGroups * 4;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) scales[i] = *reinterpret_cast<const float*>(from + i * 4);
    sync();
    Pieces pieces;
#pragma unroll
    for (int chunk = 0; chunk < S::kValueChunks; ++chunk) {
      read(pieces, chunk);
      // Codes that all have read lie in the way of these.
      if (chunk >= S::kValueChunks / 2) sync();
      widen(pieces, chunk, scales[chunk * 64 / kLatentGroup]);
    }
    fence_async_proxy();
    sync();
    if (thread == 0) arrive(state.full + ring.place);
    ring.advance();
  }

  __device__ void run(const LatentPlan& plan) {
    for (int i = 0; i < plan.num_jobs; ++i) {
      const LatentJob& job = plan.jobs[i];
      for (int unit = job.first_unit; unit <= job.last_unit; ++unit) widen_unit();
    }
  }
};

}  // namespace foretoken::cuda
