#pragma once
#include "kernels/attention/cuda/attention_codes.cuh"
#include "kernels/attention/cuda/attention_mma.cuh"
#include "kernels/attention/cuda/rotation.cuh"
#include "kernels/latent/attend_compressed.h"

// Attention to a window and to compressed entries by mma.sync, of bfloat16 and heads of kSightDim
// elements. A block has 16 query heads of a row: their queries wait in registers, units of kUnit
// entries come to shared memory one ahead, those of codes as they are: they are widened when their
// turn comes. Warps score eight entries of a unit each, sixteen
// threads make weights of a query's scores, and each warp sums up 64 elements of the values.
namespace foretoken::cuda {

inline constexpr int kSightDim = 512;
inline constexpr int kSightQueries = 16;
inline constexpr int kSightWarps = 8;
inline constexpr int kSightThreads = kSightWarps * 32;
inline constexpr int kSightChunks = kSightDim / 8;         // of 16 bytes in an entry
inline constexpr int kSightOwn = kSightDim / kSightWarps;  // elements of a warp
inline constexpr int kSightColumns = kUnit / kSightWarps;  // entries of a unit that a warp scores

inline constexpr int kSightTail = 64;  // elements of an entry of codes that are none
inline constexpr int kSightCoded = kSightDim - kSightTail;
inline constexpr EntryForm kSightCodes{KvFormat::kFp8, DType::kBF16, kSightDim, kSightTail};
inline constexpr int kSightCodeBytes = kSightCodes.bytes();

// Shared memory of a block. Codes: of units as they are stored, and of one that is widened.
template <bool Codes>
struct SightTile {
  static constexpr int kEntryBytes = Codes ? kSightCodeBytes : kSightDim * 2;
  static constexpr int kCopies = kEntryBytes / 16;  // of an entry
  char entries[Codes ? 1 : 2][kUnit * kSightDim * 2];
  char stored[Codes ? 2 : 1][Codes ? kUnit * kSightCodeBytes : 16];
  char queries[kSightQueries * kSightDim * 2];
  char weights[kSightQueries * kUnit * 2];
  float scores[kSightQueries][kUnit + 4];
  float keeps[kSightQueries];
  float sums[kSightQueries];
};

struct SightRow {
  const AttendCompressedArgs& args;
  CompressedSight sight;
  int row;
  int first_head;
  int seen;

  __device__ SightRow(const AttendCompressedArgs& a, int row, int first_head)
      : args(a),
        sight(compressed_sight(a, row, a.positions[row])),
        row(row),
        first_head(first_head) {
    seen = sight.num_window + sight.num_entries;
  }

  // Entry number `index` of what the row sees; null behind the last.
  __device__ const char* entry(int index) const {
    if (index >= seen) return nullptr;
    const void* base = index < sight.num_window ? args.kv : args.entries;
    return static_cast<const char*>(base) +
           seen_entry(args, sight, row, index) * entry_form(args).bytes();
  }
  __device__ bool has_query(int query) const { return first_head + query < args.num_heads; }
};

template <class Tile>
__device__ inline void load_sight_queries(const SightRow& of, Tile& tile) {
  const auto* q = static_cast<const char*>(of.args.q) +
                  (int64_t{of.row} * of.args.num_heads + of.first_head) * (kSightDim * 2);
  for (int i = static_cast<int>(threadIdx.x); i < kSightQueries * kSightChunks;
       i += kSightThreads) {
    const int query = i / kSightChunks, chunk = i % kSightChunks;
    const bool valid = of.has_query(query);
    copy16_async(tile.queries + chunk_offset<kSightChunks>(query, chunk),
                 q + (valid ? query * (kSightDim * 2) + chunk * 16 : 0), valid);
  }
}

// Copies the warp's eight entries of a unit; lane i of the first eight knows where the i-th is.
template <bool Codes>
__device__ inline void load_sight_unit(const SightRow& of, const char* own, char* to) {
  using Tile = SightTile<Codes>;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const auto address = reinterpret_cast<unsigned long long>(own);
#pragma unroll
  for (int i = 0; i < kSightColumns; ++i) {
    const auto* from = reinterpret_cast<const char*>(__shfl_sync(0xffffffffu, address, i));
    const bool valid = from != nullptr;
    if (!valid) from = static_cast<const char*>(of.args.kv);
#pragma unroll
    for (int chunk = lane; chunk < Tile::kCopies; chunk += 32) {
      const int entry = warp * kSightColumns + i;
      const int place = Codes ? entry * kSightCodeBytes + chunk * 16
                              : static_cast<int>(chunk_offset<kSightChunks>(entry, chunk));
      copy16_async(to + place, from + chunk * 16, valid);
    }
  }
}

// Two pairs of bfloat16, exactly four codes times a power of two.
__device__ inline uint2 scale_sight_codes(uint32_t four, uint32_t scale) {
  const WidenedCodes w = widen_codes(four);
  uint32_t even, odd;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(even) : "r"(w.even), "r"(scale), "r"(0x80008000u));
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(odd) : "r"(w.odd), "r"(scale), "r"(0x80008000u));
  return {even_of(even, odd), odd_of(even, odd)};
}

// A unit of codes as elements, by the whole block.
__device__ inline void widen_sight_unit(const char* stored, char* entries) {
  constexpr int kPieces = kSightCoded / 16;
  for (int i = static_cast<int>(threadIdx.x); i < kUnit * kPieces; i += kSightThreads) {
    const int entry = i / kPieces, piece = i % kPieces;
    const char* from = stored + entry * kSightCodeBytes;
    const uint4 codes = *reinterpret_cast<const uint4*>(from + piece * 16);
    const auto power =
        static_cast<uint8_t>(from[kSightCodes.scales_at() + piece * 16 / kCodedGroup]);
    // A power as bfloat16: its bits are the exponent's.
    const uint32_t scale = (power << 7) * 0x00010001u;
    const uint2 a = scale_sight_codes(codes.x, scale), b = scale_sight_codes(codes.y, scale);
    const uint2 c = scale_sight_codes(codes.z, scale), d = scale_sight_codes(codes.w, scale);
    *reinterpret_cast<uint4*>(entries + chunk_offset<kSightChunks>(entry, piece * 2)) = {a.x, a.y,
                                                                                         b.x, b.y};
    *reinterpret_cast<uint4*>(entries + chunk_offset<kSightChunks>(entry, piece * 2 + 1)) = {
        c.x, c.y, d.x, d.y};
  }
  constexpr int kTails = kSightTail / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kUnit * kTails; i += kSightThreads) {
    const int entry = i / kTails, chunk = i % kTails;
    *reinterpret_cast<uint4*>(entries +
                              chunk_offset<kSightChunks>(entry, kSightCoded / 8 + chunk)) =
        *reinterpret_cast<const uint4*>(stored + entry * kSightCodeBytes + kSightCodes.tail_at() +
                                        chunk * 16);
  }
}

// The queries as operands of all steps along their elements.
using SightQueries = uint32_t[kSightDim / 16][4];

template <class Tile>
__device__ inline void read_sight_queries(const Tile& tile, SightQueries& q) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t from = shared_address(tile.queries);
#pragma unroll
  for (int step = 0; step < kSightDim / 16; ++step) {
    load_matrices(q[step], from + chunk_offset<kSightChunks>(lane % 16, step * 2 + lane / 16));
  }
}

// Scores of the warp's entries of a unit, in units of log2: four chains of 128 elements.
template <class Tile>
__device__ inline void score_sight_unit(const SightQueries& q, const char* entries, int left,
                                        float scale, Tile& tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const uint32_t from = shared_address(entries);
  float chains[4][4] = {};
#pragma unroll
  for (int pair = 0; pair < kSightDim / 32; ++pair) {
    uint32_t b[4];
    load_matrices(
        b, from + chunk_offset<kSightChunks>(warp * kSightColumns + lane % 8, pair * 4 + lane / 8));
    float(&chain)[4] = chains[pair / 4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t(&a)[4] = q[pair * 2 + half];
      mma_bf16(chain, a[0], a[1], a[2], a[3], b[half * 2], b[half * 2 + 1]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float sum =
        __fadd_rn(__fadd_rn(chains[0][i], chains[1][i]), __fadd_rn(chains[2][i], chains[3][i]));
    const int column = warp * kSightColumns + lane % 4 * 2 + i % 2;
    tile.scores[lane / 4 + i / 2 * 8][column] = column < left ? __fmul_rn(sum, scale) : -INFINITY;
  }
}

// The softmax of a query: sixteen threads, each with every sixteenth entry of a unit. It begins
// with the head's sink.
struct SightSoftmax {
  float highest;
  float sum;

  __device__ static int query() { return static_cast<int>(threadIdx.x) / 16; }
  __device__ static int place() { return static_cast<int>(threadIdx.x) % 16; }
  __device__ explicit SightSoftmax(const SightRow& of) {
    constexpr float kLog2E = 1.44269504088896341f;
    highest =
        of.has_query(query()) ? __fmul_rn(of.args.sinks[of.first_head + query()], kLog2E) : 0.0f;
    sum = place() == 0 ? 1.0f : 0.0f;
  }

  // Leaves weights and by what is to be multiplied what was summed before.
  template <class Tile>
  __device__ void weigh(Tile& tile) {
    float own[kUnit / 16];
    float top = highest;
#pragma unroll
    for (int i = 0; i < kUnit / 16; ++i) {
      own[i] = tile.scores[query()][place() + i * 16];
      top = fmaxf(top, own[i]);
    }
#pragma unroll
    for (int offset = 1; offset < 16; offset *= 2) {
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    }
    const float keep = exp2_approx(__fsub_rn(highest, top));
    highest = top;
    if (place() == 0) tile.keeps[query()] = keep;
    sum = __fmul_rn(sum, keep);
#pragma unroll
    for (int i = 0; i < kUnit / 16; ++i) {
      const int column = place() + i * 16;
      const float weight = exp2_approx(__fsub_rn(own[i], top));
      sum = __fadd_rn(sum, weight);
      auto* to = reinterpret_cast<__nv_bfloat16*>(tile.weights +
                                                  chunk_offset<kUnit / 8>(query(), column / 8));
      to[column % 8] = __float2bfloat16_rn(weight);
    }
  }

  template <class Tile>
  __device__ void end(Tile& tile) const {
    float all = sum;
#pragma unroll
    for (int offset = 1; offset < 16; offset *= 2) {
      all = __fadd_rn(all, __shfl_xor_sync(0xffffffffu, all, offset));
    }
    if (place() == 0) tile.sums[query()] = all;
  }
};

// Of the 16 queries over a warp's elements, in the layout of the products: rows lane / 4 and + 8,
// of each 8 elements the two from 2 (lane % 4) on.
using SightValues = float[kSightOwn / 8][4];

template <class Tile>
__device__ inline void add_sight_values(SightValues& values, const Tile& tile,
                                        const char* entries) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const float keeps[2] = {tile.keeps[lane / 4], tile.keeps[lane / 4 + 8]};
#pragma unroll
  for (int n = 0; n < kSightOwn / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[n][i] = __fmul_rn(values[n][i], keeps[i / 2]);
  }
  const uint32_t weights = shared_address(tile.weights);
  const uint32_t from = shared_address(entries);
#pragma unroll
  for (int k = 0; k < kUnit / 16; ++k) {
    uint32_t a[4];
    load_matrices(a, weights + chunk_offset<kUnit / 8>(lane % 16, k * 2 + lane / 16));
#pragma unroll
    for (int n = 0; n < kSightOwn / 8; n += 2) {
      uint32_t b[4];
      load_matrices_transposed(
          b, from + chunk_offset<kSightChunks>(k * 16 + lane % 16,
                                               warp * (kSightOwn / 8) + n + lane / 16));
      mma_bf16(values[n], a[0], a[1], a[2], a[3], b[0], b[1]);
      mma_bf16(values[n + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
  }
}

// Divides, turns the tails back and stores.
template <class Tile>
__device__ inline void store_sight(const SightRow& of, const Tile& tile,
                                   const SightValues& values) {
  const AttendCompressedArgs& args = of.args;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int tail = kSightDim - args.rope_dim;
  const auto position = static_cast<float>(args.positions[of.row] + args.position_shift);
#pragma unroll
  for (int n = 0; n < kSightOwn / 8; ++n) {
    const int d = warp * kSightOwn + n * 8 + lane % 4 * 2;
    float2 by = make_float2(1, 0);
    if (d >= tail) by = turn_at(args.inv_freq, (d - tail) / 2, position, args.scaling);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = lane / 4 + half * 8;
      if (!of.has_query(query)) continue;
      float low = __fdiv_rn(values[n][half * 2], tile.sums[query]);
      float high = __fdiv_rn(values[n][half * 2 + 1], tile.sums[query]);
      if (d >= tail) turn(low, high, make_float2(by.x, -by.y));
      auto* to = static_cast<__nv_bfloat16*>(args.out) +
                 (int64_t{of.row} * args.num_heads + of.first_head + query) * kSightDim + d;
      *reinterpret_cast<uint32_t*>(to) = pack_bf16(low, high);
    }
  }
}

// Block (row, group of 16 query heads).
template <bool Codes>
__global__ void __launch_bounds__(kSightThreads, 1)
    attend_compressed_mma_kernel(AttendCompressedArgs args) {
  extern __shared__ __align__(128) char sight_shared[];
  auto& tile = *reinterpret_cast<SightTile<Codes>*>(sight_shared);
  const auto landing = [&](int stage) {
    return Codes ? tile.stored[stage] : tile.entries[Codes ? 0 : stage];
  };
  wait_for_all_before();
  let_next_start();
  const int row = static_cast<int>(blockIdx.x);
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const SightRow of(args, row, static_cast<int>(blockIdx.y) * kSightQueries);
  // Of the first lanes: where the warp's entries of the next unit are.
  const int own = static_cast<int>(threadIdx.x) / 32 * kSightColumns +
                  static_cast<int>(threadIdx.x) % kSightColumns;
  load_sight_queries(of, tile);
  load_sight_unit<Codes>(of, of.entry(own), landing(0));
  commit_copies();
  const char* next = of.entry(own + kUnit);
  constexpr float kLog2E = 1.44269504088896341f;
  const float scale = __fmul_rn(args.scale, kLog2E);
  SightSoftmax softmax(of);
  SightQueries q;
  SightValues values = {};
  for (int first = 0, stage = 0; first < of.seen; first += kUnit, stage ^= 1) {
    if (first + kUnit < of.seen) load_sight_unit<Codes>(of, next, landing(stage ^ 1));
    commit_copies();
    next = of.entry(own + first + 2 * kUnit);
    wait_copies<1>();
    __syncthreads();
    if (first == 0) read_sight_queries(tile, q);
    const char* entries = tile.entries[Codes ? 0 : stage];
    if constexpr (Codes) {
      widen_sight_unit(tile.stored[stage], tile.entries[0]);
      __syncthreads();
    }
    score_sight_unit(q, entries, of.seen - first, scale, tile);
    __syncthreads();
    softmax.weigh(tile);
    __syncthreads();
    add_sight_values(values, tile, entries);
    __syncthreads();
  }
  softmax.end(tile);
  __syncthreads();
  store_sight(of, tile, values);
}

template <bool Codes>
bool launch_sight(const AttendCompressedArgs& args, cudaStream_t stream) {
  constexpr int kBytes = sizeof(SightTile<Codes>);
  if (cudaFuncSetAttribute(attend_compressed_mma_kernel<Codes>,
                           cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  launch_kernel(attend_compressed_mma_kernel<Codes>,
                dim3(args.max_rows, ceil_div(args.num_heads, kSightQueries)), kSightThreads, kBytes,
                stream, args);
  return true;
}

// False where the sizes or the device do not allow it; then nothing is launched.
inline bool launch_attend_compressed_mma(const AttendCompressedArgs& args, cudaStream_t stream) {
  if (args.dtype != DType::kBF16 || args.head_dim != kSightDim) return false;
  if (args.format == KvFormat::kPlain) return launch_sight<false>(args, stream);
  if (args.format != KvFormat::kFp8 || args.rope_dim != kSightTail) return false;
  return launch_sight<true>(args, stream);
}

}  // namespace foretoken::cuda
