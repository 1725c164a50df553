#include <algorithm>
#include <numeric>

#include "kernels/cuda/attention_common.cuh"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/mma.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kStages = 2;
constexpr int kGroupRows = 16;
constexpr int kManyRows = 128;
constexpr int kGroupsForMany = 4;
constexpr int kGroupsForFew = 2;

// How a block works on heads of Dim elements: in groups of kGroupRows rows, each the work of one
// warp, or of two that compute the same scores and hold a half of the values each.
template <int Dim>
struct Shape {
  static constexpr int kTile = Dim > 128 ? 32 : 64;  // KV positions in shared memory at once
  static constexpr int kValueParts = Dim > 128 ? 2 : 1;
  static constexpr int kValueDim = Dim / kValueParts;
  static constexpr int kChunks = Dim / 8;  // of 16 bytes
  static_assert(Dim % 16 == 0 && kValueDim % 16 == 0 && kChunks <= 32);

  __device__ static int group() { return threadIdx.x / 32 / kValueParts; }
  __device__ static int first_value() { return threadIdx.x / 32 % kValueParts * kValueDim; }
};

// Address of the 16-byte chunk c of row r in a tile of rows of Dim elements: ldmatrix reads eight
// rows of one chunk without bank conflicts. Rows that start in the same bank differ in the chunk.
template <int Dim>
__device__ uint32_t chunk_offset(int r, int c) {
  constexpr int kInBanks = std::gcd(Shape<Dim>::kChunks, 8);  // rows that start in one bank, of 8
  return r * (Dim * 2) + ((c ^ (r / (8 / kInBanks) % kInBanks)) << 4);
}

// Copies K and V of a tile's positions from `begin` on; positions that no row sees become zero.
template <int Dim, int Groups>
__device__ void load_kv(const AttentionArgs& args, const QueryTile& tile, int begin, char* k_tile,
                        char* v_tile) {
  constexpr int kChunks = Shape<Dim>::kChunks;
  constexpr int kRows = Shape<Dim>::kTile / (Groups * Shape<Dim>::kValueParts);  // of a warp
  constexpr int kRowsAtOnce = 32 / kChunks;
  static_assert(kRows <= 32 && kRows % kRowsAtOnce == 0);
  const int lane = threadIdx.x % 32;
  const int first = threadIdx.x / 32 * kRows;
  const int position = begin + first + lane;
  const bool seen = lane < kRows && position >= tile.first_kv && position <= tile.last_kv;
  const int my_entry =
      seen ? static_cast<int>(kv_entry(args, tile.slot, position, tile.kv_head)) : -1;
#pragma unroll
  for (int i = 0; i < kRows; i += kRowsAtOnce) {
    const int row = i + lane / kChunks;
    const int entry = __shfl_sync(0xffffffffu, my_entry, row % 32);
    if (lane >= kRowsAtOnce * kChunks) continue;
    const int64_t from = int64_t{max(entry, 0)} * Dim + lane % kChunks * 8;
    const uint32_t to = chunk_offset<Dim>(first + row, lane % kChunks);
    copy16_async(k_tile + to, static_cast<const __nv_bfloat16*>(args.kv.k) + from, entry >= 0);
    copy16_async(v_tile + to, static_cast<const __nv_bfloat16*>(args.kv.v) + from, entry >= 0);
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
    copy16_async(q_tile + chunk_offset<Dim>(m, i % kChunks),
                 static_cast<const __nv_bfloat16*>(args.q) + head * Dim + i % kChunks * 8, valid);
  }
}

// Result of a group's 16 rows over some KV positions, in the layout of the products: this lane has
// rows lane / 4 and lane / 4 + 8, and in each block of 8 dimensions of the warp's values the two
// from 2 (lane % 4) on.
template <int Dim>
struct Partial {
  float highest[2] = {-INFINITY, -INFINITY};
  float weights[2] = {};  // this lane's part within a split, the whole sum after `finish`
  float values[Shape<Dim>::kValueDim / 8][4] = {};
};

// What a group's rows may see.
struct RowLimits {
  int first[2];
  int last[2];  // -1: no such row
  int group_last;
};

template <int Dim>
__device__ RowLimits row_limits(const AttentionArgs& args, const QueryTile& tile) {
  RowLimits limits;
  const int begin = Shape<Dim>::group() * kGroupRows;
  limits.group_last = -1;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int token = (begin + threadIdx.x % 32 / 4 + i * 8) / tile.heads;
    const bool valid = token < tile.num_tokens;
    limits.last[i] = valid ? tile.position + token : -1;
    limits.first[i] = valid ? first_visible(args, tile.position + token) : 0;
    limits.group_last = max(limits.group_last, limits.last[i]);
  }
  limits.group_last = __reduce_max_sync(0xffffffffu, limits.group_last);
  return limits;
}

// Products of the group's 16 rows with the tile's keys, and then their scores, in the same layout.
template <int Dim>
using Scores = float[Shape<Dim>::kTile / 8][4];

template <int Dim>
__device__ void multiply_qk(Scores<Dim>& scores, const char* q_tile, const char* k_tile) {
  const int lane = threadIdx.x % 32;
  const uint32_t q = shared_address(q_tile);
  const uint32_t k = shared_address(k_tile);
  const int q_row = Shape<Dim>::group() * kGroupRows + lane % 16;
#pragma unroll
  for (int d = 0; d < Dim / 16; ++d) {
    uint32_t a[4];
    load_matrices(a, q + chunk_offset<Dim>(q_row, d * 2 + lane / 16));
#pragma unroll
    for (int n = 0; n < Shape<Dim>::kTile / 16; ++n) {
      uint32_t b[4];
      const int row = n * 16 + lane / 16 * 8 + lane % 8;
      load_matrices(b, k + chunk_offset<Dim>(row, d * 2 + lane / 8 % 2));
      mma_bf16(scores[n * 2], a[0], a[1], a[2], a[3], b[0], b[1]);
      mma_bf16(scores[n * 2 + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
  }
}

__device__ inline uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

template <int Dim>
__device__ void multiply_pv(Partial<Dim>& part, const Scores<Dim>& weights, const char* v_tile) {
  const int lane = threadIdx.x % 32;
  const int first_chunk = Shape<Dim>::first_value() / 8 + lane / 16;
  const uint32_t v = shared_address(v_tile);
#pragma unroll
  for (int n = 0; n < Shape<Dim>::kTile / 16; ++n) {
    const float(&low)[4] = weights[n * 2];
    const float(&high)[4] = weights[n * 2 + 1];
    const uint32_t a0 = pack_bf16(low[0], low[1]);
    const uint32_t a1 = pack_bf16(low[2], low[3]);
    const uint32_t a2 = pack_bf16(high[0], high[1]);
    const uint32_t a3 = pack_bf16(high[2], high[3]);
#pragma unroll
    for (int d = 0; d < Shape<Dim>::kValueDim / 16; ++d) {
      uint32_t b[4];
      load_matrices_transposed(b, v + chunk_offset<Dim>(n * 16 + lane % 16, first_chunk + d * 2));
      mma_bf16(part.values[d * 2], a0, a1, a2, a3, b[0], b[1]);
      mma_bf16(part.values[d * 2 + 1], a0, a1, a2, a3, b[2], b[3]);
    }
  }
}

template <int Dim>
__device__ void cap_products(Scores<Dim>& products, const Scoring& scoring) {
#pragma unroll
  for (int n = 0; n < Shape<Dim>::kTile / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) products[n][i] = capped(scoring, products[n][i]);
  }
}

// Turns scores into weights relative to the new highest score and rescales what was there.
// A tile of which a row sees nothing leaves that row's bits as they are.
template <int Dim>
__device__ void apply_softmax(Partial<Dim>& part, Scores<Dim>& scores, int begin,
                              const RowLimits& limits, float scale) {
  const int column = begin + threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float highest = part.highest[i];
#pragma unroll
    for (int n = 0; n < Shape<Dim>::kTile / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int position = column + n * 8 + j;
        const bool visible = position >= limits.first[i] && position <= limits.last[i];
        float& score = scores[n][i * 2 + j];
        score = visible ? __fmul_rn(score, scale) : -INFINITY;
        highest = fmaxf(highest, score);
      }
    }
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
    const float base = highest == -INFINITY ? 0.0f : highest;
    const float keep = exp2_approx(__fsub_rn(part.highest[i], base));
    float sum = 0;
#pragma unroll
    for (int n = 0; n < Shape<Dim>::kTile / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float& score = scores[n][i * 2 + j];
        score = exp2_approx(__fsub_rn(score, base));
        sum = __fadd_rn(sum, score);
      }
    }
    part.weights[i] = fmaf(part.weights[i], keep, sum);
    part.highest[i] = highest;
#pragma unroll
    for (int d = 0; d < Shape<Dim>::kValueDim / 8; ++d) {
      part.values[d][i * 2] = __fmul_rn(part.values[d][i * 2], keep);
      part.values[d][i * 2 + 1] = __fmul_rn(part.values[d][i * 2 + 1], keep);
    }
  }
}

template <int Dim>
__device__ void add_tile(Partial<Dim>& part, int begin, const RowLimits& limits,
                         const Scoring& scoring, const char* q_tile, const char* k_tile,
                         const char* v_tile) {
  if (begin > limits.group_last) return;
  Scores<Dim> scores = {};
  multiply_qk<Dim>(scores, q_tile, k_tile);
  if (scoring.capped) cap_products<Dim>(scores, scoring);
  apply_softmax<Dim>(part, scores, begin, limits, scoring.scale);
  multiply_pv<Dim>(part, scores, v_tile);
}

// Ends a split: the lanes of a row add up their parts of the sum of weights.
template <int Dim>
__device__ void finish(Partial<Dim>& part) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    part.weights[i] = __fadd_rn(part.weights[i], __shfl_xor_sync(0xffffffffu, part.weights[i], 1));
    part.weights[i] = __fadd_rn(part.weights[i], __shfl_xor_sync(0xffffffffu, part.weights[i], 2));
  }
}

template <int Dim>
__device__ void merge_into(Partial<Dim>& running, const Partial<Dim>& partial) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const MergeScales scales = merge_scales(running.highest[i], partial.highest[i]);
    running.highest[i] = scales.highest;
    running.weights[i] = merge(running.weights[i], partial.weights[i], scales);
#pragma unroll
    for (int d = 0; d < Shape<Dim>::kValueDim / 8; ++d) {
      float(&to)[4] = running.values[d];
      to[i * 2] = merge(to[i * 2], partial.values[d][i * 2], scales);
      to[i * 2 + 1] = merge(to[i * 2 + 1], partial.values[d][i * 2 + 1], scales);
    }
  }
}

// Calls store(i, token row, query head) for this lane's rows that exist.
template <int Dim, class Store>
__device__ void for_each_row(const QueryTile& tile, const Store& store) {
  const int begin = Shape<Dim>::group() * kGroupRows + threadIdx.x % 32 / 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int m = begin + i * 8;
    if (m / tile.heads < tile.num_tokens) {
      store(i, tile.first_row + m / tile.heads, tile.first_head + m % tile.heads);
    }
  }
}

template <int Dim>
__device__ void store_partial(const AttentionArgs& args, const QueryTile& tile, int max_splits,
                              int split, const Partial<Dim>& part) {
  for_each_row<Dim>(tile, [&](int i, int row, int head) {
    const int64_t index = partial_index(args, max_splits, row, head, split);
    if (threadIdx.x % 4 == 0 && Shape<Dim>::first_value() == 0) {
      *partial_state(args, max_splits, index) = make_float2(part.highest[i], part.weights[i]);
    }
    float* to = partial_values(args, index) + Shape<Dim>::first_value() + threadIdx.x % 4 * 2;
#pragma unroll
    for (int d = 0; d < Shape<Dim>::kValueDim / 8; ++d) {
      *reinterpret_cast<float2*>(to + d * 8) =
          make_float2(part.values[d][i * 2], part.values[d][i * 2 + 1]);
    }
  });
}

template <int Dim>
__device__ void store_result(const AttentionArgs& args, const QueryTile& tile,
                             const Partial<Dim>& part) {
  for_each_row<Dim>(tile, [&](int i, int row, int head) {
    auto* to = static_cast<__nv_bfloat16*>(args.out) +
               (int64_t{row} * args.num_heads + head) * Dim + Shape<Dim>::first_value() +
               threadIdx.x % 4 * 2;
#pragma unroll
    for (int d = 0; d < Shape<Dim>::kValueDim / 8; ++d) {
      *reinterpret_cast<uint32_t*>(to + d * 8) =
          pack_bf16(normalized(part.values[d][i * 2], part.weights[i]),
                    normalized(part.values[d][i * 2 + 1], part.weights[i]));
    }
  });
}

template <int Dim, int Groups>
struct BlockShape {
  static constexpr int kThreads = Groups * Shape<Dim>::kValueParts * 32;
  static constexpr int kTileBytes = Shape<Dim>::kTile * Dim * 2;
  static constexpr int kBytes = kStages * 2 * kTileBytes + Groups * kGroupRows * Dim * 2;
};

// Block (token row, KV head and group of its query heads, part of the splits).
template <int Dim, int Groups>
__global__ void __launch_bounds__(BlockShape<Dim, Groups>::kThreads)
    attention_mma_kernel(AttentionArgs args, AttentionSchedule schedule, int tokens,
                         int max_heads) {
  constexpr int kTileBytes = BlockShape<Dim, Groups>::kTileBytes;
  extern __shared__ char shared[];
  char* q_tile = shared + kStages * 2 * kTileBytes;
  wait_for_previous();
  let_next_start();
  const QueryTile tile = find_tile < Groups == kGroupsForMany > (args, tokens, max_heads);
  if (tile.num_tokens == 0) return;
  TileWalk<Shape<Dim>::kTile> next{tile.first_kv, tile.last_kv, schedule.num_parts, 0, 0};
  next.start(blockIdx.z);
  if (!next.valid()) return;
  const auto load = [&](int stage) {
    char* k_tile = shared + stage % kStages * 2 * kTileBytes;
    load_kv<Dim, Groups>(args, tile, next.begin, k_tile, k_tile + kTileBytes);
  };
  TileWalk<Shape<Dim>::kTile> walk = next;
  load_q<Dim, Groups>(args, tile, q_tile);
  load(0);
  commit_copies();
  next.advance();
  const RowLimits limits = row_limits<Dim>(args, tile);
  const Scoring scoring = scoring_of(args);
  Partial<Dim> running;
  Partial<Dim> part;
  for (int stage = 0; walk.valid(); ++stage, walk.advance()) {
    if (next.valid()) load(stage + 1);
    commit_copies();
    next.advance();
    wait_copies<1>();
    __syncthreads();
    const char* k_tile = shared + stage % kStages * 2 * kTileBytes;
    add_tile<Dim>(part, walk.begin, limits, scoring, q_tile, k_tile, k_tile + kTileBytes);
    __syncthreads();
    if (!walk.ends_split()) continue;
    finish<Dim>(part);
    if (schedule.num_parts > 1) {
      store_partial<Dim>(args, tile, schedule.max_splits, walk.split, part);
    } else {
      merge_into<Dim>(running, part);
    }
    part = Partial<Dim>{};
  }
  wait_copies<0>();
  if (schedule.num_parts == 1) store_result<Dim>(args, tile, running);
}

int heads_at_once(const AttentionArgs& args) {
  return std::min(args.num_heads / args.kv.num_kv_heads, kGroupRows);
}

template <int Dim, int Groups>
void launch(const AttentionArgs& args, AttentionSchedule schedule, cudaStream_t stream) {
  using Block = BlockShape<Dim, Groups>;
  const auto kernel = attention_mma_kernel<Dim, Groups>;
  static const cudaError_t raised =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Block::kBytes);
  if (raised != cudaSuccess) return;
  const int group = args.num_heads / args.kv.num_kv_heads;
  const int max_heads = heads_at_once(args);
  const int tokens = Groups * kGroupRows / max_heads;
  const dim3 grid(args.max_rows, args.kv.num_kv_heads * ceil_div(group, max_heads),
                  schedule.num_parts);
  launch_kernel(kernel, grid, Block::kThreads, Block::kBytes, stream, args, schedule, tokens,
                max_heads);
}

template <int Dim>
void launch_for_rows(const AttentionArgs& args, AttentionSchedule schedule, cudaStream_t stream) {
  if (args.max_rows > kManyRows) {
    launch<Dim, kGroupsForMany>(args, schedule, stream);
  } else {
    launch<Dim, kGroupsForFew>(args, schedule, stream);
  }
}

}  // namespace

bool has_attention_mma(int head_dim) {
  return head_dim == 64 || head_dim == 96 || head_dim == 128 || head_dim == 256;
}

int attention_mma_tokens(const AttentionArgs& args) {
  const int groups = args.max_rows > kManyRows ? kGroupsForMany : kGroupsForFew;
  return groups * kGroupRows / heads_at_once(args);
}

void launch_attention_mma(const AttentionArgs& args, AttentionSchedule schedule,
                          cudaStream_t stream) {
  switch (args.kv.head_dim) {
    case 64:
      return launch_for_rows<64>(args, schedule, stream);
    case 96:
      return launch_for_rows<96>(args, schedule, stream);
    case 128:
      return launch_for_rows<128>(args, schedule, stream);
    case 256:
      return launch_for_rows<256>(args, schedule, stream);
  }
}

}  // namespace foretoken::cuda
