#include "kernels/latent/choose_blocks.h"

#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/latent/cuda/best_of_ranks.cuh"
#include "kernels/latent/index_rows.h"

namespace foretoken::cuda {
namespace {

constexpr int kScoreThreads = 256;
constexpr int kScoreWarps = kScoreThreads / 32;
constexpr int kScoreGrid = 64;  // blocks of a row, at most
constexpr int kRankThreads = 256;
constexpr int kHeadsAtOnce = 16;
constexpr int kQueryPadding = 8;  // elements between heads, so that their rows lie in other banks

// The rows whose scores have room at the same time.
struct RowBatch {
  int first;
  int64_t stride;  // scores of a head
};

__host__ __device__ constexpr int padded_heads(int num_heads) {
  return (num_heads + kHeadsAtOnce - 1) / kHeadsAtOnce * kHeadsAtOnce;
}

// NaN is the highest.
__device__ float higher(float a, float b) { return a > b || a != a ? a : b; }

__device__ int64_t key_entry(const ChooseBlocksArgs& args, int slot, int position) {
  const int64_t table = int64_t{slot} * args.max_blocks;
  const int block = args.block_tables[table + position / args.block_size];
  return int64_t{block} * args.block_size + position % args.block_size;
}

// The queries of a row, heads of zeros behind them.
template <class T>
__device__ void load_queries(const ChooseBlocksArgs& args, int row, T* q) {
  const int stride = args.head_dim + kQueryPadding;
  const T* from = static_cast<const T*>(args.q) + int64_t{row} * args.num_heads * args.head_dim;
  for (int e = threadIdx.x; e < padded_heads(args.num_heads) * args.head_dim; e += kScoreThreads) {
    const int head = e / args.head_dim;
    q[head * stride + e % args.head_dim] = head < args.num_heads ? from[e] : from_float<T>(0.0f);
  }
  __syncthreads();
}

// Positions [begin, end) of a sequence.
struct Positions {
  int slot;
  int begin;
  int end;
};

// The highest products of 16 heads with positions, for heads lane / 4 and lane / 4 + 8 in every
// lane of a warp.
__device__ void highest_products(const ChooseBlocksArgs& args, const Positions& of,
                                 const __nv_bfloat16* q, float (&best)[2]) {
  const int lane = threadIdx.x % 32;
  const int group = lane / 4, pair = lane % 4 * 2;
  const auto two = [](const __nv_bfloat16* from) {
    return *reinterpret_cast<const uint32_t*>(from);
  };
  const __nv_bfloat16* low = q + group * (args.head_dim + kQueryPadding) + pair;
  const __nv_bfloat16* high = low + 8 * (args.head_dim + kQueryPadding);
  bool has_any = false;
  for (int first = of.begin; first < of.end; first += 8) {
    const int64_t entry = key_entry(args, of.slot, min(first + group, of.end - 1));
    const auto* key = static_cast<const __nv_bfloat16*>(args.keys) + entry * args.head_dim + pair;
    float products[4] = {};
    for (int d = 0; d < args.head_dim; d += 16) {
      mma_bf16(products, two(low + d), two(high + d), two(low + d + 8), two(high + d + 8),
               two(key + d), two(key + d + 8));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first + pair + i % 2 >= of.end) continue;
      best[i / 2] = has_any || i % 2 == 1 ? higher(products[i], best[i / 2]) : products[i];
    }
    has_any = has_any || first + pair < of.end;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (!has_any) best[i] = -INFINITY;
    for (int offset = 1; offset < 4; offset *= 2) {
      best[i] = higher(__shfl_xor_sync(0xffffffffu, best[i], offset), best[i]);
    }
  }
}

// The same for heads of Dim elements, 16 bytes a lane at once, of which each four make a lane's
// operands of two products: queries wait in registers, keys of 32 positions are on their way at the
// same time.
template <int Dim>
__device__ void highest_wide_products(const ChooseBlocksArgs& args, const Positions& of,
                                      const __nv_bfloat16* q, float (&best)[2]) {
  constexpr int kSteps = Dim / 32;
  constexpr int kTiles = 4;  // of eight positions
  const int lane = threadIdx.x % 32;
  const int group = lane / 4, quarter = lane % 4;
  uint4 low[kSteps], high[kSteps];
  const __nv_bfloat16* own = q + group * (Dim + kQueryPadding) + quarter * 8;
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    low[k] = *reinterpret_cast<const uint4*>(own + k * 32);
    high[k] = *reinterpret_cast<const uint4*>(own + 8 * (Dim + kQueryPadding) + k * 32);
  }
  bool has_any = false;
  for (int first = of.begin; first < of.end; first += 8 * kTiles) {
    uint4 keys[kTiles][kSteps];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const int64_t entry = key_entry(args, of.slot, min(first + t * 8 + group, of.end - 1));
      const auto* key = static_cast<const __nv_bfloat16*>(args.keys) + entry * Dim + quarter * 8;
#pragma unroll
      for (int k = 0; k < kSteps; ++k) keys[t][k] = *reinterpret_cast<const uint4*>(key + k * 32);
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      float products[4] = {};
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        const uint4 key = keys[t][k];
        mma_bf16(products, low[k].x, high[k].x, low[k].y, high[k].y, key.x, key.y);
        mma_bf16(products, low[k].z, high[k].z, low[k].w, high[k].w, key.z, key.w);
      }
      const int position = first + t * 8 + quarter * 2;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (position + i % 2 >= of.end) continue;
        best[i / 2] = has_any || i % 2 == 1 ? higher(products[i], best[i / 2]) : products[i];
      }
      has_any = has_any || position < of.end;
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (!has_any) best[i] = -INFINITY;
    for (int offset = 1; offset < 4; offset *= 2) {
      best[i] = higher(__shfl_xor_sync(0xffffffffu, best[i], offset), best[i]);
    }
  }
}

__device__ void score_block(const ChooseBlocksArgs& args, const Positions& of,
                            const __nv_bfloat16* q, float* scores, int64_t stride) {
  const int lane = threadIdx.x % 32;
  for (int first = 0; first < args.num_heads; first += kHeadsAtOnce) {
    float best[2] = {};
    const __nv_bfloat16* heads = q + first * (args.head_dim + kQueryPadding);
    if (args.head_dim == 128) {
      highest_wide_products<128>(args, of, heads, best);
    } else if (args.head_dim == 32) {
      highest_wide_products<32>(args, of, heads, best);
    } else {
      highest_products(args, of, heads, best);
    }
    if (lane % 4 != 0) continue;
    for (int i = 0; i < 2; ++i) {
      const int head = first + lane / 4 + i * 8;
      if (head < args.num_heads) scores[head * stride] = best[i];
    }
  }
}

// The same for floats: a lane has each 32nd position.
__device__ void score_block(const ChooseBlocksArgs& args, const Positions& of, const float* q,
                            float* scores, int64_t stride) {
  const int lane = threadIdx.x % 32;
  for (int head = 0; head < args.num_heads; ++head) {
    const float* own = q + head * (args.head_dim + kQueryPadding);
    float best = -INFINITY;
    for (int position = of.begin + lane; position < of.end; position += 32) {
      const auto* key =
          static_cast<const float*>(args.keys) + key_entry(args, of.slot, position) * args.head_dim;
      float product = 0;
      for (int d = 0; d < args.head_dim; ++d) product = fmaf(own[d], key[d], product);
      best = higher(product, best);
    }
    for (int offset = 1; offset < 32; offset *= 2) {
      best = higher(__shfl_xor_sync(0xffffffffu, best, offset), best);
    }
    if (lane == 0) scores[head * stride] = best;
  }
}

// Block (part of what a row sees, row of the batch); a warp has a block of positions at once.
template <class T>
__global__ void __launch_bounds__(kScoreThreads)
    block_scores_kernel(ChooseBlocksArgs args, RowBatch batch) {
  extern __shared__ __align__(16) char score_shared[];
  wait_for_previous();
  const int row = batch.first + static_cast<int>(blockIdx.y);
  if (row >= args.counts->num_rows) return;
  const SeenBlocks seen = seen_blocks(args, row);
  if (seen.count <= args.top || static_cast<int>(blockIdx.x) * kScoreWarps >= seen.count) return;
  auto* q = reinterpret_cast<T*>(score_shared);
  load_queries(args, row, q);
  const int slot = args.row_slot[row];
  float* scores = args.workspace + int64_t{blockIdx.y} * args.num_heads * batch.stride;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int block = blockIdx.x * kScoreWarps + warp; block < seen.count;
       block += gridDim.x * kScoreWarps) {
    const int begin = seen.begin + block * args.choice;
    score_block(args, Positions{slot, begin, min(begin + args.choice, seen.end)}, q, scores + block,
                batch.stride);
  }
}

// The pages of the row's chosen block number `place`.
__device__ void write_block(const ChooseBlocksArgs& args, const SeenBlocks& seen, int row, int head,
                            int block, int place) {
  const int each = args.choice / args.page;
  const int64_t first = ((int64_t{row} * args.num_heads + head) * args.top + place) * each;
  const int begin = seen.begin + block * args.choice;
  for (int i = 0; i < each && begin + i * args.page < seen.end; ++i) {
    write_page(args, first + i, args.row_slot[row], head, begin + i * args.page);
  }
}

// Block (KV head, row of the batch).
__global__ void __launch_bounds__(kRankThreads)
    select_blocks_kernel(ChooseBlocksArgs args, RowBatch batch) {
  __shared__ RankScratch<kRankThreads> scratch;
  wait_for_previous();
  const int row = batch.first + static_cast<int>(blockIdx.y), head = blockIdx.x;
  const int rows = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  const int64_t out = int64_t{row} * args.num_heads + head;
  if (out == 0 && threadIdx.x == 0) {
    *args.rows_of_heads = *args.counts;
    args.rows_of_heads->num_rows = rows * args.num_heads;
  }
  if (row >= rows) return;
  const SeenBlocks seen = seen_blocks(args, row);
  if (threadIdx.x == 0) {
    const int skipped = max(seen.count - args.top, 0);
    args.last[out] = seen.end - seen.begin - skipped * args.choice - 1;
    args.rows[out] = static_cast<int32_t>(out);
  }
  if (seen.count <= args.top) {
    for (int i = threadIdx.x; i < seen.count; i += kRankThreads) {
      write_block(args, seen, row, head, i, i);
    }
    return;
  }
  const float* scores =
      args.workspace + (int64_t{blockIdx.y} * args.num_heads + head) * batch.stride;
  const auto rank_at = [&](int i) { return block_rank(args, i, seen.count, scores[i]); };
  const RankThreshold threshold =
      find_threshold<kRankThreads>(seen.count, args.top, scratch, rank_at);
  visit_best<kRankThreads>(
      seen.count, threshold, scratch, rank_at, KeepsAll(),
      [&](int block, int place) { write_block(args, seen, row, head, block, place); });
}

template <class T>
void launch_block_scores(const ChooseBlocksArgs& args, const RowBatch& batch, int rows,
                         cudaStream_t stream) {
  const size_t bytes = padded_heads(args.num_heads) * (args.head_dim + kQueryPadding) * sizeof(T);
  const auto kernel = block_scores_kernel<T>;
  const cudaError_t raised = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (raised != cudaSuccess) return;
  const int parts = ceil_div(batch.stride, kScoreWarps);
  launch_kernel(kernel, dim3(std::min(parts, kScoreGrid), rows), kScoreThreads, bytes, stream, args,
                batch);
}

}  // namespace

void launch_choose_blocks(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ChooseBlocksArgs>(packed);
  const int64_t stride = score_stride(args);
  const int64_t room = kMaxScores / (stride * args.num_heads);
  const int rows = static_cast<int>(std::clamp<int64_t>(room, 1, args.max_rows));
  for (int first = 0; first < args.max_rows; first += rows) {
    const RowBatch batch{first, stride};
    const int own = std::min(rows, args.max_rows - first);
    if (args.dtype == DType::kBF16) {
      launch_block_scores<__nv_bfloat16>(args, batch, own, stream);
    } else {
      launch_block_scores<float>(args, batch, own, stream);
    }
    launch_kernel(select_blocks_kernel, dim3(args.num_heads, own), kRankThreads, 0, stream, args,
                  batch);
  }
}

}  // namespace foretoken::cuda
