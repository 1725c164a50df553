#include <algorithm>

#include "kernels/attention/cuda/attention_latent.cuh"
#include "kernels/attention/cuda/attention_mma.cuh"
#include "kernels/attention/cuda/kv_codes.cuh"

// Attention over latents by mma.sync, for every GPU: each sum of attention_latent.cu, in its order.
namespace foretoken::cuda {
namespace {

constexpr int kQueries = 16;  // query heads of a block, all of one row
constexpr int kLatentWarps = 8;
constexpr int kThreads = kLatentWarps * 32;
constexpr int kChunks = kLatentDim / 8;             // of 16 bytes in a key
constexpr int kOwn = kLatentValues / kLatentWarps;  // elements of the values of a warp
constexpr int kMergeValues = 4;                     // elements of a thread that merges

// Shared memory of a block, from a multiple of 128 bytes on.
struct LatentTile {
  char keys[kUnit * kLatentDim * 2];
  char queries[kQueries * kLatentDim * 2];
  char weights[kQueries * kUnit * 2];
  float scores[kQueries][kUnit];
  float keeps[kQueries];
  float2 states[kQueries];  // of the split that has ended: highest, sum of weights
};

// Of the 16 queries over a warp's elements, in the layout of the products: rows lane / 4 and + 8,
// of each 8 elements the two from 2 (lane % 4) on.
using OwnValues = float[kOwn / 8][4];

struct LatentRow {
  int row;
  int first_head;
  int heads;
  int slot;
  int position;
  int first;  // position that it sees
};

// Eight elements of an entry of codes.
template <KvFormat Format>
__device__ uint4 widened_chunk(const KvLayer& kv, const uint8_t* entry, int chunk) {
  uint4 words{};
  auto* word = reinterpret_cast<uint32_t*>(&words);
#pragma unroll
  for (int d = 0; d < 8; d += 2) {
    word[d / 2] = pack_bf16(coded_element<__nv_bfloat16, Format>(kv, entry, chunk * 8 + d),
                            coded_element<__nv_bfloat16, Format>(kv, entry, chunk * 8 + d + 1));
  }
  return words;
}

__device__ void load_unit(const AttentionArgs& args, const LatentRow& of, int unit, char* keys) {
  const KvFormat format = args.kv.format;
  const auto* cache = static_cast<const uint8_t*>(args.kv.k);
  for (int i = static_cast<int>(threadIdx.x); i < kUnit * kChunks; i += kThreads) {
    const int position = unit * kUnit + i / kChunks;
    const int chunk = i % kChunks;
    const bool seen = position >= of.first && position <= of.position;
    const int64_t entry = seen ? kv_entry(args, of.slot, position, 0) : 0;
    char* to = keys + chunk_offset<kChunks>(i / kChunks, chunk);
    const uint8_t* from = cache + entry * kv_entry_bytes(args.kv);
    if (format == KvFormat::kPlain) {
      copy16_async(to, from + chunk * 16, seen);
      continue;
    }
    uint4 words{};
    if (seen) {
      words = format == KvFormat::kInt8 ? widened_chunk<KvFormat::kInt8>(args.kv, from, chunk)
                                        : widened_chunk<KvFormat::kFp8>(args.kv, from, chunk);
    }
    *reinterpret_cast<uint4*>(to) = words;
  }
}

__device__ void load_queries(const AttentionArgs& args, const LatentRow& of, char* queries) {
  const auto* q = static_cast<const __nv_bfloat16*>(args.q) +
                  (int64_t{of.row} * args.num_heads + of.first_head) * kLatentDim;
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * kChunks; i += kThreads) {
    const int query = i / kChunks;
    const bool valid = query < of.heads;
    copy16_async(queries + chunk_offset<kChunks>(query, i % kChunks),
                 q + (valid ? query : 0) * kLatentDim + i % kChunks * 8, valid);
  }
}

// Scores of 8 positions of the warp: four chains of 128 elements, the last with those that are no
// values.
__device__ void score_unit(LatentTile& tile, const LatentRow& of, int unit, float scale) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t queries = shared_address(tile.queries);
  const uint32_t keys = shared_address(tile.keys);
  float chains[4][4] = {};
#pragma unroll
  for (int pair = 0; pair < kLatentDim / 32; ++pair) {
    uint32_t b[4];
    load_matrices(b, keys + chunk_offset<kChunks>(warp * 8 + lane % 8, pair * 4 + lane / 8));
    float(&chain)[4] = chains[pair < 16 ? pair / 4 : 3];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t a[4];
      load_matrices(a, queries + chunk_offset<kChunks>(lane % 16, pair * 4 + half * 2 + lane / 16));
      mma_bf16(chain, a[0], a[1], a[2], a[3], b[half * 2], b[half * 2 + 1]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float sum =
        __fadd_rn(__fadd_rn(chains[0][i], chains[1][i]), __fadd_rn(chains[2][i], chains[3][i]));
    const int column = warp * 8 + lane % 4 * 2 + i % 2;
    const int position = unit * kUnit + column;
    const bool seen = position >= of.first && position <= of.position;
    tile.scores[lane / 4 + i / 2 * 8][column] = seen ? __fmul_rn(sum, scale) : -INFINITY;
  }
}

// The softmax of a query within a split: 16 threads, each with positions 16 w + g and + 8 of a unit
// for w = r / 8 and + 2, g = r % 8.
struct QuerySums {
  float highest = -INFINITY;
  float sums[2] = {};

  __device__ static int query() { return static_cast<int>(threadIdx.x) / 16; }
  __device__ static int place(int pair) {
    const int r = static_cast<int>(threadIdx.x) % 16;
    return (r / 8 + pair * 2) * 16 + r % 8;
  }

  // Leaves weights and by what is to be multiplied what was summed before.
  __device__ void weigh(LatentTile& tile) {
    const float* scores = tile.scores[query()];
    float own[4];
    float top = highest;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      own[i] = scores[place(i / 2) + i % 2 * 8];
      top = fmaxf(top, own[i]);
    }
#pragma unroll
    for (int offset = 1; offset < 16; offset *= 2) {
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    }
    const float base = top == -INFINITY ? 0.0f : top;
    const float keep = exp2_approx(__fsub_rn(highest, base));
    highest = top;
    if (threadIdx.x % 16 == 0) tile.keeps[query()] = keep;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      own[i] = exp2_approx(__fsub_rn(own[i], base));
      const int column = place(i / 2) + i % 2 * 8;
      auto* to = reinterpret_cast<__nv_bfloat16*>(tile.weights +
                                                  chunk_offset<kUnit / 8>(query(), column / 8));
      to[column % 8] = __float2bfloat16_rn(own[i]);
    }
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      sums[pair] = fmaf(sums[pair], keep, __fadd_rn(own[pair * 2], own[pair * 2 + 1]));
    }
  }

  // Ends a split.
  __device__ void end(LatentTile& tile) {
    float both[2];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      float sum = sums[pair];
      sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 1));
      sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 2));
      sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 4));
      both[pair] = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 8));
    }
    const float sum = __fadd_rn(both[0], both[1]);
    if (threadIdx.x % 16 == 0) tile.states[query()] = make_float2(highest, sum);
    *this = {};
  }
};

__device__ void add_values(OwnValues& part, const LatentTile& tile, bool fresh) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float keeps[2] = {tile.keeps[lane / 4], tile.keeps[lane / 4 + 8]};
#pragma unroll
  for (int n = 0; n < kOwn / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      part[n][i] = fresh ? 0.0f : __fmul_rn(part[n][i], keeps[i / 2]);
    }
  }
  const uint32_t weights = shared_address(tile.weights);
  const uint32_t values = shared_address(tile.keys);
#pragma unroll
  for (int k = 0; k < kUnit / 16; ++k) {
    uint32_t a[4];
    load_matrices(a, weights + chunk_offset<kUnit / 8>(lane % 16, k * 2 + lane / 16));
#pragma unroll
    for (int n = 0; n < kOwn / 8; n += 2) {
      uint32_t b[4];
      load_matrices_transposed(
          b, values + chunk_offset<kChunks>(k * 16 + lane % 16, warp * (kOwn / 8) + n + lane / 16));
      mma_bf16(part[n], a[0], a[1], a[2], a[3], b[0], b[1]);
      mma_bf16(part[n + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
  }
}

// The result over the splits so far.
struct LatentResult {
  float2 states[2];  // of this lane's two queries
  OwnValues values;

  __device__ void merge_split(const LatentTile& tile, const OwnValues& part, bool is_first) {
    const int query = static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float2 other = tile.states[query + half * 8];
      float2& state = states[half];
      const MergeScales scales = merge_scales(state.x, other.x);
      state = is_first ? other : make_float2(scales.highest, merge(state.y, other.y, scales));
#pragma unroll
      for (int n = 0; n < kOwn / 8; ++n) {
#pragma unroll
        for (int i = half * 2; i < half * 2 + 2; ++i) {
          values[n][i] = is_first ? part[n][i] : merge(values[n][i], part[n][i], scales);
        }
      }
    }
  }
};

// Calls take(query, element, two neighbouring values) for what this lane has.
template <class Take>
__device__ void for_own(const OwnValues& values, const Take& take) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < kOwn / 8; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      take(lane / 4 + half * 8, warp * kOwn + n * 8 + lane % 4 * 2,
           make_float2(values[n][half * 2], values[n][half * 2 + 1]));
    }
  }
}

__device__ void store_out(const AttentionArgs& args, const LatentRow& of,
                          const LatentResult& result) {
  for_own(result.values, [&](int query, int d, float2 pair) {
    if (query >= of.heads) return;
    const int head = of.first_head + query;
    const float2 state = result.states[query / 8];
    const float inverse = inverse_of(with_sink(args, head, state.x, state.y));
    auto* to = static_cast<__nv_bfloat16*>(args.out) +
               (int64_t{of.row} * args.num_heads + head) * kLatentValues + d;
    *reinterpret_cast<uint32_t*>(to) =
        pack_bf16(__fmul_rn(pair.x, inverse), __fmul_rn(pair.y, inverse));
  });
}

__device__ void store_split(const AttentionArgs& args, const LatentRow& of, int max_splits,
                            int split, const LatentTile& tile, const OwnValues& part) {
  for_own(part, [&](int query, int d, float2 pair) {
    if (query >= of.heads) return;
    const int64_t index = partial_index(args, max_splits, of.row, of.first_head + query, split);
    *reinterpret_cast<float2*>(partial_values(args, index) + d) = pair;
    if (d == 0) *partial_state(args, max_splits, index) = tile.states[query];
  });
}

// Block (row, group of 16 query heads, part): takes splits part, part + num_parts, ...
__global__ void __launch_bounds__(kThreads)
    attention_latent_mma_kernel(AttentionArgs args, AttentionSchedule schedule) {
  extern __shared__ __align__(128) char shared[];
  LatentTile& tile = *reinterpret_cast<LatentTile*>(shared);
  wait_for_previous();
  LatentRow of{static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y) * kQueries};
  if (of.row >= args.counts->num_rows) return;
  of.heads = min(kQueries, args.num_heads - of.first_head);
  of.slot = args.row_slot[of.row];
  of.position = args.positions[of.row];
  of.first = first_visible(args, of.position);
  const int first_unit = of.first / kUnit;
  const int last_unit = of.position / kUnit;
  const float scale = scoring_of(args).scale;
  load_queries(args, of, tile.queries);
  QuerySums sums;
  LatentResult result;
  const int first_split = LatentSplits::of(first_unit);
  for (int split = first_split + static_cast<int>(blockIdx.z); split <= LatentSplits::of(last_unit);
       split += schedule.num_parts) {
    const int begin = max(first_unit, LatentSplits::begin(split));
    const int end = min(last_unit, LatentSplits::begin(split + 1) - 1);
    OwnValues part;
    for (int unit = begin; unit <= end; ++unit) {
      load_unit(args, of, unit, tile.keys);
      commit_copies();
      wait_copies<0>();
      __syncthreads();
      score_unit(tile, of, unit, scale);
      __syncthreads();
      sums.weigh(tile);
      if (unit == end) sums.end(tile);
      __syncthreads();
      add_values(part, tile, unit == begin);
      __syncthreads();
    }
    if (schedule.num_parts > 1) {
      store_split(args, of, schedule.max_splits, split, tile, part);
    } else {
      result.merge_split(tile, part, split == first_split);
    }
    __syncthreads();
  }
  if (schedule.num_parts == 1) store_out(args, of, result);
}

// Block (row, query head): merges what the parts have left, in order.
__global__ void __launch_bounds__(kLatentValues / kMergeValues)
    latent_merge_kernel(AttentionArgs args, int max_splits) {
  wait_for_previous();
  const int row = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  if (row >= args.counts->num_rows) return;
  const int position = args.positions[row];
  const int first = LatentSplits::of(first_visible(args, position) / kUnit);
  const int last = LatentSplits::of(position / kUnit);
  const int d = static_cast<int>(threadIdx.x) * kMergeValues;
  float2 state{};
  float4 values{};
  for (int split = first; split <= last; ++split) {
    const int64_t index = partial_index(args, max_splits, row, head, split);
    const float2 other = *partial_state(args, max_splits, index);
    const float4 part = *reinterpret_cast<const float4*>(partial_values(args, index) + d);
    if (split == first) {
      state = other;
      values = part;
      continue;
    }
    const MergeScales scales = merge_scales(state.x, other.x);
    state = {scales.highest, merge(state.y, other.y, scales)};
    values = {merge(values.x, part.x, scales), merge(values.y, part.y, scales),
              merge(values.z, part.z, scales), merge(values.w, part.w, scales)};
  }
  const float inverse = inverse_of(with_sink(args, head, state.x, state.y));
  const uint2 words{pack_bf16(__fmul_rn(values.x, inverse), __fmul_rn(values.y, inverse)),
                    pack_bf16(__fmul_rn(values.z, inverse), __fmul_rn(values.w, inverse))};
  *reinterpret_cast<uint2*>(static_cast<__nv_bfloat16*>(args.out) +
                            (int64_t{row} * args.num_heads + head) * kLatentValues + d) = words;
}

// Few blocks share the splits of their rows, where partial results have room.
AttentionSchedule latent_schedule(const AttentionArgs& args) {
  const int units = ceil_div(int64_t{args.max_blocks} * args.kv.block_size, kUnit);
  const int max_splits = LatentSplits::of(units - 1) + 1;
  const int64_t floats = int64_t{args.max_rows} * args.num_heads * max_splits * (kLatentValues + 2);
  const int blocks = args.max_rows * ceil_div(args.num_heads, kQueries);
  const int wanted = 2 * device_traits().num_sms / blocks;
  if (args.workspace == nullptr || floats > args.workspace_floats) return {1, max_splits};
  return {std::clamp(wanted, 1, max_splits), max_splits};
}

}  // namespace

bool launch_attention_latent_mma(const AttentionArgs& args, cudaStream_t stream) {
  const KvLayer& kv = args.kv;
  if (kv.dtype != DType::kBF16 || kv.num_kv_heads != 1 || kv.head_dim != kLatentDim ||
      kv.value_dim != kLatentValues || args.slopes != nullptr || args.softcap != 0 ||
      args.last_seen != nullptr) {
    return false;
  }
  constexpr int kBytes = sizeof(LatentTile);
  if (cudaFuncSetAttribute(attention_latent_mma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           kBytes) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  const AttentionSchedule schedule = latent_schedule(args);
  const dim3 grid(args.max_rows, ceil_div(args.num_heads, kQueries), schedule.num_parts);
  launch_kernel(attention_latent_mma_kernel, grid, kThreads, kBytes, stream, args, schedule);
  if (schedule.num_parts > 1) {
    launch_kernel(latent_merge_kernel, dim3(args.max_rows, args.num_heads),
                  kLatentValues / kMergeValues, 0, stream, args, schedule.max_splits);
  }
  return true;
}

}  // namespace foretoken::cuda
