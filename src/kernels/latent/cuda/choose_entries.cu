#include "kernels/latent/choose_entries.h"

#include <algorithm>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/latent/cuda/best_of_ranks.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kScoreThreads = 256;
constexpr int kScoreTile = 64;    // positions of a block at once: eight of each warp
constexpr int kScoreBlocks = 64;  // of a row, at most
constexpr int kQueryPadding = 8;  // elements between heads, so that their rows lie in other banks
constexpr int kSelectThreads = 1024;

// The rows whose scores have room at the same time.
struct RowBatch {
  int first;
  int64_t stride;  // scores of a row
};

struct SeenPositions {
  int slot;
  int begin;
  int count;

  __device__ SeenPositions(const ChooseEntriesArgs& args, int row) {
    const SeenKeys keys = seen_keys(args, args.positions[row]);
    slot = args.row_slot[row];
    begin = keys.begin;
    count = keys.end - keys.begin;
  }
  __device__ int64_t entry(const ChooseEntriesArgs& args, int index) const {
    const int position = begin + index;
    const int64_t table = int64_t{slot} * args.max_blocks;
    const int block = args.block_tables[table + position / args.block_size];
    return int64_t{block} * args.block_size + position % args.block_size;
  }
};

__host__ __device__ constexpr int padded_heads(int num_heads) { return (num_heads + 15) / 16 * 16; }

// The queries of a row, heads of zeros behind them, and their weights.
template <class T>
__device__ void load_index_queries(const ChooseEntriesArgs& args, int row, T* q, float* weights) {
  const int stride = args.head_dim + kQueryPadding;
  const int heads = padded_heads(args.num_heads);
  const T* from = static_cast<const T*>(args.q) + int64_t{row} * args.num_heads * args.head_dim;
  for (int e = threadIdx.x; e < heads * args.head_dim; e += kScoreThreads) {
    const int head = e / args.head_dim;
    q[head * stride + e % args.head_dim] = head < args.num_heads ? from[e] : from_float<T>(0.0f);
  }
  for (int head = threadIdx.x; head < heads; head += kScoreThreads) {
    weights[head] =
        head < args.num_heads ? args.weights[int64_t{row} * args.num_heads + head] : 0.0f;
  }
  __syncthreads();
}

// A warp's eight positions by products of 16 heads: a lane adds up heads lane / 4, + 8, + 16, ...
// of two positions, then lanes join.
__device__ void score_positions(const ChooseEntriesArgs& args, const SeenPositions& seen, int first,
                                const __nv_bfloat16* q, const float* weights, float* scores) {
  const int lane = threadIdx.x % 32;
  const int group = lane / 4, pair = lane % 4 * 2;
  const int stride = args.head_dim + kQueryPadding;
  const int64_t entry = seen.entry(args, min(first + group, seen.count - 1));
  const auto* key = static_cast<const __nv_bfloat16*>(args.keys) + entry * args.head_dim + pair;
  const auto two = [](const __nv_bfloat16* from) {
    return *reinterpret_cast<const uint32_t*>(from);
  };
  float sums[2] = {};
  for (int head = group; head < padded_heads(args.num_heads); head += 16) {
    float products[4] = {};
    const __nv_bfloat16* low = q + head * stride + pair;
    const __nv_bfloat16* high = low + 8 * stride;
    for (int d = 0; d < args.head_dim; d += 16) {
      mma_bf16(products, two(low + d), two(high + d), two(low + d + 8), two(high + d + 8),
               two(key + d), two(key + d + 8));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float positive = products[i] < 0 ? 0.0f : products[i];
      sums[i % 2] = fmaf(weights[head + i / 2 * 8], positive, sums[i % 2]);
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    for (int offset = 4; offset < 32; offset *= 2) {
      sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], offset);
    }
    if (group == 0 && first + pair + i < seen.count) scores[first + pair + i] = sums[i];
  }
}

// The same for floats, a position by each thread of the first quarter of them.
__device__ void score_positions(const ChooseEntriesArgs& args, const SeenPositions& seen, int first,
                                const float* q, const float* weights, float* scores) {
  const int lane = threadIdx.x % 32;
  if (lane >= kScoreTile / (kScoreThreads / 32) || first + lane >= seen.count) return;
  const auto* key =
      static_cast<const float*>(args.keys) + seen.entry(args, first + lane) * args.head_dim;
  float sum = 0;
  for (int head = 0; head < args.num_heads; ++head) {
    const float* own = q + head * (args.head_dim + kQueryPadding);
    float product = 0;
    for (int d = 0; d < args.head_dim; ++d) product = fmaf(own[d], key[d], product);
    sum = fmaf(weights[head], product < 0 ? 0.0f : product, sum);
  }
  scores[first + lane] = sum;
}

// Block (part of the positions, row of the batch).
template <class T>
__global__ void __launch_bounds__(kScoreThreads)
    index_scores_kernel(ChooseEntriesArgs args, RowBatch batch) {
  extern __shared__ __align__(16) char score_shared[];
  wait_for_previous();
  const int row = batch.first + static_cast<int>(blockIdx.y);
  if (row >= args.counts->num_rows) return;
  const SeenPositions seen(args, row);
  if (seen.count <= args.top || static_cast<int>(blockIdx.x) * kScoreTile >= seen.count) return;
  auto* weights = reinterpret_cast<float*>(score_shared);
  auto* q = reinterpret_cast<T*>(weights + padded_heads(args.num_heads));
  load_index_queries(args, row, q, weights);
  float* scores = args.workspace + blockIdx.y * batch.stride;
  const int own = static_cast<int>(threadIdx.x) / 32 * (kScoreTile / (kScoreThreads / 32));
  for (int tile = blockIdx.x * kScoreTile; tile < seen.count; tile += gridDim.x * kScoreTile) {
    if (tile + own < seen.count) score_positions(args, seen, tile + own, q, weights, scores);
  }
}

// Writes what a row attends to: chosen positions, or of several ranks those that this one holds.
struct EntryWriter {
  const ChooseEntriesArgs& args;
  const SeenPositions& seen;
  int32_t* out;
  int* counts;    // kSelectThreads ints of shared memory
  int* num_held;  // of the rounds before, in shared memory

  // Every thread calls it; `place` is among all chosen ones.
  __device__ void operator()(int index, int place, bool chosen) const {
    const int64_t entry = chosen ? seen.entry(args, index) : 0;
    if (args.context_size == 1) {
      if (chosen) out[place] = static_cast<int32_t>(entry);
      return;
    }
    const int held = chosen && entry % args.context_size == args.context_rank ? 1 : 0;
    const int own = *num_held + block_scan<kSelectThreads>(held, counts) - held;
    if (held != 0) out[own] = static_cast<int32_t>(entry / args.context_size);
    __syncthreads();
    if (threadIdx.x == kSelectThreads - 1) *num_held = own + held;
    __syncthreads();
  }
};

// Block: a row of the batch.
__global__ void __launch_bounds__(kSelectThreads)
    select_entries_kernel(ChooseEntriesArgs args, RowBatch batch) {
  __shared__ int counts[kSelectThreads];
  __shared__ int num_held;
  wait_for_previous();
  const int row = batch.first + static_cast<int>(blockIdx.x);
  if (row >= args.counts->num_rows) return;
  const SeenPositions seen(args, row);
  if (threadIdx.x == 0) num_held = 0;
  __syncthreads();
  const EntryWriter write{args, seen, args.entries + int64_t{row} * args.top, counts, &num_held};
  if (seen.count <= args.top) {
    for (int begin = 0; begin < seen.count; begin += kSelectThreads) {
      const int index = begin + static_cast<int>(threadIdx.x);
      write(index, index, index < seen.count);
    }
  } else {
    const float* scores = args.workspace + blockIdx.x * batch.stride;
    const auto rank_at = [&](int i) { return ~score_order(scores[i]); };
    const RankThreshold threshold =
        find_threshold<kSelectThreads>(seen.count, args.top, counts, rank_at);
    visit_best<kSelectThreads>(seen.count, threshold, counts, rank_at, write);
  }
  if (threadIdx.x != 0) return;
  const int own = args.context_size == 1 ? min(seen.count, args.top) : num_held;
  args.last[row] = (own - 1) * args.context_size + args.context_rank;
  args.rows[row] = row;
}

template <class T>
void launch_index_scores(const ChooseEntriesArgs& args, const RowBatch& batch, int rows,
                         cudaStream_t stream) {
  const int heads = padded_heads(args.num_heads);
  const size_t bytes = heads * (sizeof(float) + (args.head_dim + kQueryPadding) * sizeof(T));
  const auto kernel = index_scores_kernel<T>;
  const cudaError_t raised = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (raised != cudaSuccess) return;
  const int tiles = ceil_div(batch.stride, kScoreTile);
  launch_kernel(kernel, dim3(std::min(tiles, kScoreBlocks), rows), kScoreThreads, bytes, stream,
                args, batch);
}

}  // namespace

void launch_choose_entries(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ChooseEntriesArgs>(packed);
  const int64_t context = int64_t{args.max_blocks} * args.block_size;
  const int64_t room = kMaxScores / context;
  const int rows = static_cast<int>(std::clamp<int64_t>(room, 1, args.max_rows));
  for (int first = 0; first < args.max_rows; first += rows) {
    const RowBatch batch{first, context};
    const int own = std::min(rows, args.max_rows - first);
    if (args.dtype == DType::kBF16) {
      launch_index_scores<__nv_bfloat16>(args, batch, own, stream);
    } else {
      launch_index_scores<float>(args, batch, own, stream);
    }
    launch_kernel(select_entries_kernel, own, kSelectThreads, 0, stream, args, batch);
  }
}

}  // namespace foretoken::cuda
