#pragma once
#include <type_traits>

#include "kernels/attention/cuda/attention_codes.cuh"
#include "kernels/attention/cuda/attention_rows.cuh"

// Attention by mma.sync, for every GPU and head size of the tensor cores. attention_mma_codes.cu
// has the kernels for KvFormat::kFp8, attention_mma_integers.cu those for kInt8, attention_mma.cu
// the others.
namespace foretoken::cuda {
namespace {

constexpr int kStages = 2;
constexpr int kGroupsForLong = 4;  // of kGroupRows query rows
constexpr int kGroupsForShort = 2;
constexpr int kManyRows = 1024;
constexpr int kWindow = 8;  // rows of a block when there are many

// The chunks of 16 bytes of a key or value, without its scale.
template <int Dim, KvFormat Format>
inline constexpr int kKvChunks = Format == KvFormat::kPlain ? Dim / 8 : Dim / 16;

// A unit of keys or of values in shared memory: chunks, and behind them the scales of kInt8.
template <int Dim, KvFormat Format>
struct UnitTile {
  static constexpr int kChunkBytes = kUnit * kKvChunks<Dim, Format> * 16;
  static constexpr int kBytes = kChunkBytes + (Format == KvFormat::kInt8 ? kUnit * 4 : 0);

  __device__ static char* scale(char* tile, int row) { return tile + kChunkBytes + row * 4; }
  // Of positions n * 8 + 2 (lane % 4) and the next.
  __device__ static float2 scales(const char* tile, int n) {
    const int row = n * 8 + threadIdx.x % 4 * 2;
    return *reinterpret_cast<const float2*>(tile + kChunkBytes + row * 4);
  }
};

// An entry of kInt8 from global memory to row `row` of a tile, by words, which is what it is
// aligned to. word: below Dim / 4 of codes, else the scale. entry: -1 for zeros.
template <int Dim>
__device__ void copy_integers(char* tile, const void* cache, int row, int word, int entry) {
  using Tile = UnitTile<Dim, KvFormat::kInt8>;
  constexpr int kChunks = kKvChunks<Dim, KvFormat::kInt8>;
  const char* from = static_cast<const char*>(cache) + int64_t{max(entry, 0)} * (Dim + 4);
  char* to = word < Dim / 4 ? tile + chunk_offset<kChunks>(row, word / 4) + word % 4 * 4
                            : Tile::scale(tile, row);
  copy4_async(to, from + word * 4, entry >= 0);
}

// Copies K and V of a tile's positions from `begin` on; positions that no row sees become zero.
template <int Dim, int Groups, KvFormat Format>
__device__ void load_kv(const AttentionArgs& args, const QueryTile& tile, int begin, char* k_tile,
                        char* v_tile) {
  constexpr bool kIntegers = Format == KvFormat::kInt8;
  constexpr int kChunks = kKvChunks<Dim, Format>;
  constexpr int kPieces = kIntegers ? Dim / 4 + 1 : kChunks;         // of an entry
  constexpr int kRows = kUnit / (Groups * Shape<Dim>::kValueParts);  // of a warp
  constexpr int kUnrolled = kIntegers ? 2 : kRows * kPieces / 32 + 1;
  const int lane = threadIdx.x % 32;
  const int first = threadIdx.x / 32 * kRows;
  const int position = begin + first + lane;
  const bool seen = lane < kRows && position >= tile.first_kv && position <= tile.last_kv;
  const int my_entry =
      seen ? static_cast<int>(kv_entry(args, tile.slot, position, tile.kv_head)) : -1;
#pragma unroll kUnrolled
  for (int i = 0; i < kRows * kPieces; i += 32) {
    const int row = (i + lane) / kPieces;
    const int piece = (i + lane) % kPieces;
    const int entry = __shfl_sync(0xffffffffu, my_entry, row);
    if (kRows * kPieces % 32 != 0 && row >= kRows) continue;
    if constexpr (kIntegers) {
      copy_integers<Dim>(k_tile, args.kv.k, first + row, piece, entry);
      copy_integers<Dim>(v_tile, args.kv.v, first + row, piece, entry);
    } else {
      const int64_t from = (int64_t{max(entry, 0)} * kChunks + piece) * 16;
      const uint32_t to = chunk_offset<kChunks>(first + row, piece);
      copy16_async(k_tile + to, static_cast<const char*>(args.kv.k) + from, entry >= 0);
      copy16_async(v_tile + to, static_cast<const char*>(args.kv.v) + from, entry >= 0);
    }
  }
}

template <int Dim, int Groups>
__device__ void load_q(const AttentionArgs& args, const QueryTile& tile, char* q_tile) {
  constexpr int kChunks = Shape<Dim>::kChunks;
  for (int i = threadIdx.x; i < Groups * kGroupRows * kChunks; i += blockDim.x) {
    const int m = i / kChunks;
    const int token = m / tile.heads;
    const bool valid = token < tile.num_tokens;
    const int64_t head = int64_t{tile.first_row + (valid ? token : 0)} * args.num_heads +
                         tile.first_head + m % tile.heads;
    copy16_async(q_tile + chunk_offset<kChunks>(m, i % kChunks),
                 static_cast<const __nv_bfloat16*>(args.q) + head * Dim + i % kChunks * 8, valid);
  }
}

// The same in the order of attention_codes.cuh.
template <int Dim, int Groups>
__device__ void load_q_for_codes(const AttentionArgs& args, const QueryTile& tile, char* q_tile) {
  constexpr int kChunks = Shape<Dim>::kChunks;
  for (int i = threadIdx.x; i < Groups * kGroupRows * kChunks / 2; i += blockDim.x) {
    const int m = i / (kChunks / 2);
    const int chunk = i % (kChunks / 2) * 2;
    const int token = m / tile.heads;
    const int64_t head =
        int64_t{tile.first_row + token} * args.num_heads + tile.first_head + m % tile.heads;
    uint4 low{}, high{};
    if (token < tile.num_tokens) {
      const auto* from = reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(args.q) +
                                                        head * Dim + chunk * 8);
      low = from[0];
      high = from[1];
    }
    *reinterpret_cast<uint4*>(q_tile + chunk_offset<kChunks>(m, chunk)) = evens_of(low, high);
    *reinterpret_cast<uint4*>(q_tile + chunk_offset<kChunks>(m, chunk + 1)) = odds_of(low, high);
  }
}

template <int Dim>
__device__ void multiply_qk(Scores<Dim>& scores, const char* q_tile, const char* k_tile) {
  const int lane = threadIdx.x % 32;
  const uint32_t q = shared_address(q_tile);
  const uint32_t k = shared_address(k_tile);
  const int q_row = Shape<Dim>::group() * kGroupRows + lane % 16;
#pragma unroll
  for (int d = 0; d < Dim / 16; ++d) {
    uint32_t a[4];
    load_matrices(a, q + chunk_offset<Shape<Dim>::kChunks>(q_row, d * 2 + lane / 16));
#pragma unroll
    for (int n = 0; n < kUnit / 16; ++n) {
      uint32_t b[4];
      const int row = n * 16 + lane / 16 * 8 + lane % 8;
      load_matrices(b, k + chunk_offset<Shape<Dim>::kChunks>(row, d * 2 + lane / 8 % 2));
      mma_bf16(scores[n * 2], a[0], a[1], a[2], a[3], b[0], b[1]);
      mma_bf16(scores[n * 2 + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
  }
}

template <int Dim>
__device__ void multiply_pv(Partial<Dim>& part, const Scores<Dim>& weights, const char* v_tile) {
  const int lane = threadIdx.x % 32;
  const int first_chunk = Shape<Dim>::first_value() / 8 + lane / 16;
  const uint32_t v = shared_address(v_tile);
#pragma unroll
  for (int n = 0; n < kUnit / 16; ++n) {
    const float(&low)[4] = weights[n * 2];
    const float(&high)[4] = weights[n * 2 + 1];
    const uint32_t a0 = pack_bf16(low[0], low[1]);
    const uint32_t a1 = pack_bf16(low[2], low[3]);
    const uint32_t a2 = pack_bf16(high[0], high[1]);
    const uint32_t a3 = pack_bf16(high[2], high[3]);
#pragma unroll
    for (int d = 0; d < Shape<Dim>::kValueDim / 16; ++d) {
      uint32_t b[4];
      load_matrices_transposed(
          b, v + chunk_offset<Shape<Dim>::kChunks>(n * 16 + lane % 16, first_chunk + d * 2));
      mma_bf16(part.values[d * 2], a0, a1, a2, a3, b[0], b[1]);
      mma_bf16(part.values[d * 2 + 1], a0, a1, a2, a3, b[2], b[3]);
    }
  }
}

// With the codes of 16 dimensions of 32 positions at a time.
template <int Dim, KvFormat Format>
__device__ void multiply_qk_codes(Scores<Dim>& scores, const char* q_tile, const char* k_tile) {
  const int lane = threadIdx.x % 32;
  const uint32_t q = shared_address(q_tile);
  const uint32_t k = shared_address(k_tile);
  const int q_row = Shape<Dim>::group() * kGroupRows + lane % 16;
#pragma unroll
  for (int d = 0; d < Dim / 16; ++d) {
    uint32_t a[4];
    load_matrices(a, q + chunk_offset<Shape<Dim>::kChunks>(q_row, d * 2 + lane / 16));
#pragma unroll
    for (int n = 0; n < kUnit / 8; n += 4) {
      uint32_t words[4];
      load_matrices(words, k + chunk_offset<kKvChunks<Dim, Format>>(n * 8 + lane, d));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const WidenedCodes b = widen<Format>(words[i]);
        mma_bf16(scores[n + i], a[0], a[1], a[2], a[3], b.even, b.odd);
      }
    }
  }
}

// Of each position times the scale of its entry.
template <int Dim>
__device__ void scale_positions(Scores<Dim>& products, const char* tile) {
#pragma unroll
  for (int n = 0; n < kUnit / 8; ++n) {
    const float2 scales = UnitTile<Dim, KvFormat::kInt8>::scales(tile, n);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      products[n][i] = __fmul_rn(products[n][i], i % 2 == 0 ? scales.x : scales.y);
    }
  }
}

template <int Dim, KvFormat Format>
__device__ void multiply_pv_codes(Partial<Dim>& part, const Scores<Dim>& weights,
                                  const char* v_tile) {
  const int lane = threadIdx.x % 32;
  const int first_chunk = Shape<Dim>::first_value() / 16;
  const uint32_t v = shared_address(v_tile);
#pragma unroll
  for (int n = 0; n < kUnit / 8; n += 4) {
    uint32_t a[2][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[i / 2][i % 2 * 2] = pack_bf16(weights[n + i][0], weights[n + i][1]);
      a[i / 2][i % 2 * 2 + 1] = pack_bf16(weights[n + i][2], weights[n + i][3]);
    }
#pragma unroll
    for (int d = 0; d < Shape<Dim>::kValueDim / 16; ++d) {
      uint32_t words[4];
      load_matrices_transposed(
          words, v + chunk_offset<kKvChunks<Dim, Format>>(n * 8 + lane, first_chunk + d));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const WidenedCodes near = widen<Format>(words[i * 2]);
        const WidenedCodes far = widen<Format>(words[i * 2 + 1]);
        mma_bf16(part.values[d * 2], a[i][0], a[i][1], a[i][2], a[i][3], near.even, far.even);
        mma_bf16(part.values[d * 2 + 1], a[i][0], a[i][1], a[i][2], a[i][3], near.odd, far.odd);
      }
    }
  }
}

template <int Dim, KvFormat Format>
__device__ void add_tile(Partial<Dim>& part, int begin, const RowLimits& limits,
                         const Scoring& scoring, const char* q_tile, const char* k_tile,
                         const char* v_tile) {
  if (begin > limits.group_last) return;
  Scores<Dim> scores = {};
  if constexpr (Format != KvFormat::kPlain) {
    multiply_qk_codes<Dim, Format>(scores, q_tile, k_tile);
  } else {
    multiply_qk<Dim>(scores, q_tile, k_tile);
  }
  if constexpr (Format == KvFormat::kInt8) scale_positions<Dim>(scores, k_tile);
  if (scoring.capped) cap_products<Dim>(scores, scoring);
  apply_softmax<Dim>(part, scores, begin, limits, scoring.scale);
  if constexpr (Format == KvFormat::kInt8) scale_positions<Dim>(scores, v_tile);
  if constexpr (Format != KvFormat::kPlain) {
    multiply_pv_codes<Dim, Format>(part, scores, v_tile);
  } else {
    multiply_pv<Dim>(part, scores, v_tile);
  }
}

template <int Dim, int Groups, KvFormat Format>
struct BlockShape {
  static constexpr int kThreads = Groups * Shape<Dim>::kValueParts * 32;
  static constexpr int kUnitBytes = UnitTile<Dim, Format>::kBytes;
  static constexpr int kBytes = kStages * 2 * kUnitBytes + Groups * kGroupRows * Dim * 2;
};

// The units of a tile that a block takes: those of splits part, part + num_parts, ...
struct UnitWalk {
  int first;
  int last;
  int num_parts;
  int unit = 0;

  __device__ static int begin(int split) { return AttentionSplits::begin(split) / kUnit; }
  __device__ bool valid() const { return unit <= last; }
  __device__ void start(int part) { unit = max(first, begin(split_of_unit(first) + part)); }
  __device__ void advance() {
    unit = ends_split(unit) ? begin(split_of_unit(unit) + num_parts) : unit + 1;
  }
};

template <int Dim, int Groups, KvFormat Format>
__device__ void attend(const AttentionArgs& args, AttentionSchedule schedule, int which,
                       const QueryTile& tile, char* shared) {
  constexpr int kUnitBytes = BlockShape<Dim, Groups, Format>::kUnitBytes;
  char* q_tile = shared + kStages * 2 * kUnitBytes;
  UnitWalk next{tile.first_kv / kUnit, tile.last_kv / kUnit, schedule.num_parts};
  next.start(which);
  if (!next.valid()) return;
  const auto load = [&](int stage) {
    char* k_tile = shared + stage % kStages * 2 * kUnitBytes;
    if (next.valid()) {
      load_kv<Dim, Groups, Format>(args, tile, next.unit * kUnit, k_tile, k_tile + kUnitBytes);
      next.advance();
    }
    commit_copies();
  };
  UnitWalk walk = next;
  if constexpr (Format != KvFormat::kPlain) {
    load_q_for_codes<Dim, Groups>(args, tile, q_tile);
  } else {
    load_q<Dim, Groups>(args, tile, q_tile);
  }
  load(0);
  const RowLimits limits = row_limits<Dim>(args, tile);
  const Scoring scoring = Format == KvFormat::kFp8
                              ? scoring_of_codes(args, tile.first_row, tile.kv_head)
                              : scoring_of(args);
  Partial<Dim> running;
  Partial<Dim> part;
  for (int stage = 0; walk.valid(); ++stage, walk.advance()) {
    load(stage + 1);
    wait_copies<1>();
    __syncthreads();
    const char* k_tile = shared + stage % kStages * 2 * kUnitBytes;
    add_tile<Dim, Format>(part, walk.unit * kUnit, limits, scoring, q_tile, k_tile,
                          k_tile + kUnitBytes);
    __syncthreads();
    if (!ends_split(walk.unit) && walk.unit < walk.last) continue;
    finish(part);
    if (schedule.num_parts > 1) {
      store_partial<Dim, Format != KvFormat::kPlain>(args, tile, schedule.max_splits,
                                                     split_of_unit(walk.unit), part);
    } else {
      merge_into<Dim>(running, part);
    }
    part = Partial<Dim>{};
  }
  wait_copies<0>();
  if (schedule.num_parts > 1) return;
  if constexpr (Format != KvFormat::kPlain) {
    store_result_of_codes<Dim>(args, tile, running);
  } else {
    store_result<Dim>(args, tile, running);
  }
}

template <int Dim, KvFormat Format>
__global__ void __launch_bounds__(BlockShape<Dim, kGroupsForLong, Format>::kThreads)
    attention_mma_long_kernel(AttentionArgs args, TileShape shape) {
  extern __shared__ __align__(128) char shared[];
  wait_for_previous();
  let_next_start();
  TileWalk walk = tiles_of_block(args, shape);
  for (walk.next(); walk.tile.num_tokens > 0; walk.next()) {
    __syncthreads();
    attend<Dim, kGroupsForLong, Format>(args, {1, 0}, 0, walk.tile, shared);
  }
}

// Block (`window` token rows from `first_row` on, KV head and group of its query heads, part of the
// splits). See LongCut::overlaps: the last row of a long context takes one block as long as many
// others' work.
template <int Dim, KvFormat Format>
__global__ void __launch_bounds__(BlockShape<Dim, kGroupsForShort, Format>::kThreads)
    attention_mma_short_kernel(AttentionArgs args, AttentionSchedule schedule, TileShape shape,
                               int window, int first_row) {
  extern __shared__ __align__(128) char shared[];
  wait_for_all_before();
  let_next_start();
  const int live = min(args.counts->num_rows, args.max_rows);
  const int begin = first_row + blockIdx.x * window;
  ShortTileWalk walk{args,
                     live,
                     shape,
                     static_cast<int>(blockIdx.y),
                     begin,
                     min(begin + window, live),
                     schedule.first_end};
  for (walk.next(); walk.tile.num_tokens > 0; walk.next()) {
    __syncthreads();
    attend<Dim, kGroupsForShort, Format>(args, schedule, blockIdx.z, walk.tile, shared);
  }
}

template <int Dim, KvFormat Format>
void launch_long(const AttentionArgs& args, cudaStream_t stream) {
  using Block = BlockShape<Dim, kGroupsForLong, Format>;
  const auto kernel = attention_mma_long_kernel<Dim, Format>;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Block::kBytes);
  if (raised != cudaSuccess) return;
  const TileShape shape = tiles_for(args, kGroupsForLong * kGroupRows);
  const dim3 grid(head_chunks(args, shape), ceil_div(args.max_rows, shape.tokens));
  launch_kernel(kernel, grid, Block::kThreads, Block::kBytes, stream, args, shape);
}

template <int Dim, KvFormat Format>
void launch_short(const AttentionArgs& args, AttentionSchedule schedule, cudaStream_t stream) {
  using Block = BlockShape<Dim, kGroupsForShort, Format>;
  const auto kernel = attention_mma_short_kernel<Dim, Format>;
  const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Block::kBytes);
  if (raised != cudaSuccess) return;
  const TileShape shape = tiles_for(args, kGroupsForShort * kGroupRows);
  // In large buckets most rows belong to long runs.
  const int window = args.max_rows > kManyRows ? kWindow : 1;
  const int first_row = std::max(schedule.first_end - kLongRun, 0);
  const dim3 grid(ceil_div(args.max_rows - first_row, window), head_chunks(args, shape),
                  schedule.num_parts);
  launch_kernel(kernel, grid, Block::kThreads, Block::kBytes, stream, args, schedule, shape, window,
                first_row);
}

// Calls launch(std::integral_constant<int, head_dim>).
template <class Launch>
void for_head_dim(int head_dim, const Launch& launch) {
  switch (head_dim) {
    case 64:
      return launch(std::integral_constant<int, 64>{});
    case 80:
      return launch(std::integral_constant<int, 80>{});
    case 96:
      return launch(std::integral_constant<int, 96>{});
    case 112:
      return launch(std::integral_constant<int, 112>{});
    case 128:
      return launch(std::integral_constant<int, 128>{});
    case 192:
      return launch(std::integral_constant<int, 192>{});
    case 256:
      return launch(std::integral_constant<int, 256>{});
  }
}

}  // namespace
}  // namespace foretoken::cuda
