#include "kernels/rows/fold_streams.h"

#include <cooperative_groups.h>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/rows/hyper_math.h"

namespace foretoken::cuda {
namespace {

constexpr int kFoldThreads = 256;
constexpr int kFoldWarps = kFoldThreads / 32;
// The columns of a row are summed up in so many parts, whatever number of blocks share them.
constexpr int kFoldParts = 8;
constexpr int kSingleFoldRows = 16;  // up to which a cluster has one row
constexpr int kManyFoldRows = 4;     // of a cluster beyond
constexpr int kLineFloats = 32;      // of a line of L2

// Sums of a row: its products, then its squares.
template <int Streams, StreamWeights Learned>
inline constexpr int kFoldSums = num_hyper_weights(Streams, Learned) + 1;

// Of one block.
template <int Rows, int Sums>
struct FoldShared {
  float of_warps[kFoldWarps][Rows][Sums];
  float of_parts[kFoldParts][Rows][Sums];  // of those that the block has, in turn
  float products[Rows][Sums];
  float shares[Rows][kMaxHyperStreams];
};

// The columns of a part.
struct FoldColumns {
  int begin;
  int end;

  __device__ FoldColumns(int width, int part) {
    const int each = ceil_div(width, kFoldParts);
    begin = min(part * each, width);
    end = min(begin + each, width);
  }
};

// The weights are constant: they come to L2 while the op before still runs.
template <int Made>
__device__ void fetch_fold_weights(const FoldStreamsArgs& args, int width, int rank, int blocks) {
  for (int part = rank; part < kFoldParts; part += blocks) {
    const FoldColumns columns(width, part);
    const int lines = ceil_div(columns.end - columns.begin, kLineFloats);
    for (int i = threadIdx.x; i < Made * lines; i += kFoldThreads) {
      const float* line =
          args.fn + int64_t{i / lines} * width + columns.begin + i % lines * kLineFloats;
      asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
    }
  }
}

// Leaves the sums of a part's columns of `live` rows from `streams` on in sums[row][..].
template <int Rows, int Sums>
__device__ void sum_fold_part(const FoldStreamsArgs& args, const float* streams, int live,
                              const FoldColumns& columns, FoldShared<Rows, Sums>& shared,
                              float (&out)[Rows][Sums]) {
  const int width = args.num_streams * args.size;
  float sums[Rows][Sums] = {};
  for (int c = columns.begin + static_cast<int>(threadIdx.x); c < columns.end; c += kFoldThreads) {
    float weights[Sums - 1];
#pragma unroll
    for (int i = 0; i < Sums - 1; ++i) weights[i] = args.fn[int64_t{i} * width + c];
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const float x = streams[int64_t{min(r, live - 1)} * width + c];
#pragma unroll
      for (int i = 0; i < Sums - 1; ++i) {
        sums[r][i] = __fadd_rn(sums[r][i], __fmul_rn(x, weights[i]));
      }
      sums[r][Sums - 1] = __fadd_rn(sums[r][Sums - 1], __fmul_rn(x, x));
    }
  }
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
#pragma unroll
    for (int i = 0; i < Sums; ++i) {
      for (int offset = 16; offset > 0; offset /= 2) {
        sums[r][i] = __fadd_rn(sums[r][i], __shfl_xor_sync(0xffffffffu, sums[r][i], offset));
      }
      if (threadIdx.x % 32 == 0) shared.of_warps[threadIdx.x / 32][r][i] = sums[r][i];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < Rows * Sums; i += kFoldThreads) {
    float sum = 0;
    for (int w = 0; w < kFoldWarps; ++w) sum = __fadd_rn(sum, (&shared.of_warps[w][0][0])[i]);
    (&out[0][0])[i] = sum;
  }
  __syncthreads();
}

// What all threads of a cluster wrote to shared memory before is seen by all.
__device__ void meet_fold_blocks(int blocks) {
  if (blocks == 1) return __syncthreads();
#if __CUDA_ARCH__ >= 900
  cooperative_groups::this_cluster().sync();
#endif
}

// A variable in the shared memory of another block of the cluster.
__device__ float of_fold_block(float& local, int blocks, int other) {
#if __CUDA_ARCH__ >= 900
  if (blocks > 1) return *cooperative_groups::this_cluster().map_shared_rank(&local, other);
#endif
  return local;
}

// One of a matrix's elements, which lie in the lanes of a warp, divided by the sum of those `count`
// from lane `first` on that are `stride` apart.
template <int Streams>
__device__ float divided_by_sum(float own, int first, int stride, float eps) {
  float sum = __shfl_sync(0xffffffffu, own, first);
#pragma unroll
  for (int i = 1; i < Streams; ++i) {
    sum = __fadd_rn(sum, __shfl_sync(0xffffffffu, own, first + i * stride));
  }
  return __fdiv_rn(own, __fadd_rn(sum, eps));
}

// hyper_math::mixing_weights by a warp: lane j * Streams + s has element (j, s).
template <int Streams>
__device__ void store_mixing_weights(const FoldStreamsArgs& args, const float* products,
                                     float* weights) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int place = min(lane, Streams * Streams - 1), j = place / Streams, s = place % Streams;
  float row[kMaxHyperStreams];
  hyper_math::soften_row(args, products, j, row);
  float own = row[0];
#pragma unroll
  for (int i = 1; i < Streams; ++i) own = i == s ? row[i] : own;
  for (int round = 0; round < args.rounds; ++round) {
    if (round > 0) own = divided_by_sum<Streams>(own, j * Streams, 1, args.eps);
    own = divided_by_sum<Streams>(own, s, Streams, args.eps);
  }
  if (lane < Streams) weights[lane] = hyper_math::leaving(args, products, lane);
  if (lane < Streams * Streams) weights[Streams + lane] = own;
}

// The same where each stream keeps itself.
template <int Streams>
__device__ void store_giving_weights(const FoldStreamsArgs& args, const float* products,
                                     float* weights) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane < Streams) weights[lane] = hyper_math::leaving(args, products, lane);
  if (lane < Streams * Streams) weights[Streams + lane] = lane % (Streams + 1) == 0 ? 1.0f : 0.0f;
}

// The block's columns of folded rows.
template <int Streams>
__device__ void store_folded(const FoldStreamsArgs& args, int row, int rank, int blocks,
                             const float* shares) {
  const float* streams = args.streams + int64_t{row} * Streams * args.size;
  for (int c = rank * kFoldThreads + static_cast<int>(threadIdx.x); c < args.size;
       c += blocks * kFoldThreads) {
    float sum = __fmul_rn(shares[0], streams[c]);
#pragma unroll
    for (int s = 1; s < Streams; ++s) {
      sum = __fadd_rn(sum, __fmul_rn(shares[s], streams[int64_t{s} * args.size + c]));
    }
    args.folded[int64_t{row} * args.size + c] = sum;
  }
}

// A cluster has Rows rows, of which each block sums up parts of the columns; every block then knows
// all sums, and the last ones make the mixing weights.
template <int Streams, StreamWeights Learned, int Rows>
__global__ void __launch_bounds__(kFoldThreads)
    fold_streams_kernel(FoldStreamsArgs args, int blocks) {
  constexpr int kSums = kFoldSums<Streams, Learned>;
  __shared__ FoldShared<Rows, kSums> shared;
  const int rank = static_cast<int>(blockIdx.x) % blocks;
  const int first = static_cast<int>(blockIdx.x) / blocks * Rows;
  const int width = Streams * args.size;
  if (first == 0) fetch_fold_weights<kSums - 1>(args, width, rank, blocks);
  wait_for_previous();
  const int live = min(live_rows(args.counts, RowKind::kToken, 0, args.max_rows) - first, Rows);
  if (live <= 0) return;
  const float* streams = args.streams + int64_t{first} * width;
  for (int part = rank, i = 0; part < kFoldParts; part += blocks, ++i) {
    sum_fold_part<Rows, kSums>(args, streams, live, FoldColumns(width, part), shared,
                               shared.of_parts[i]);
  }
  meet_fold_blocks(blocks);
  for (int i = threadIdx.x; i < Rows * kSums; i += kFoldThreads) {
    float sum = 0;
    for (int part = 0; part < kFoldParts; ++part) {
      float& local = (&shared.of_parts[part / blocks][0][0])[i];
      sum = __fadd_rn(sum, of_fold_block(local, blocks, part % blocks));
    }
    (&shared.products[0][0])[i] = sum;
  }
  meet_fold_blocks(blocks);
  const int row = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (row < Rows) {
    float* products = shared.products[row];
    const float mean = products[kSums - 1] / static_cast<float>(width);
    const float factor = 1.0f / sqrtf(mean + args.norm_eps);
    __syncwarp();
    if (lane < kSums - 1) products[lane] *= factor;
    __syncwarp();
    if (lane < Streams) shared.shares[row][lane] = hyper_math::entering(args, products, lane);
  }
  __syncthreads();
  for (int r = 0; r < live; ++r) {
    store_folded<Streams>(args, first + r, rank, blocks, shared.shares[r]);
  }
  if constexpr (Learned != StreamWeights::kEnter) {
    if (rank != blocks - 1 || row >= live) return;
    float* weights = args.weights + int64_t{first + row} * Streams * (1 + Streams);
    if constexpr (Learned == StreamWeights::kMix) {
      store_mixing_weights<Streams>(args, shared.products[row], weights);
    } else {
      store_giving_weights<Streams>(args, shared.products[row], weights);
    }
  }
}

template <int Streams, StreamWeights Learned>
void launch_fold(const FoldStreamsArgs& args, cudaStream_t stream) {
  const int blocks = device_traits().clusters ? kFoldParts : 1;
  const bool many = args.max_rows > kSingleFoldRows;
  const auto kernel = many ? fold_streams_kernel<Streams, Learned, kManyFoldRows>
                           : fold_streams_kernel<Streams, Learned, 1>;
  const int clusters = many ? ceil_div(args.max_rows, kManyFoldRows) : args.max_rows;
  launch_cluster(kernel, clusters * blocks, blocks, kFoldThreads, 0, stream, args, blocks);
}

template <int Streams>
void launch_fold_of(const FoldStreamsArgs& args, cudaStream_t stream) {
  switch (args.learned()) {
    case StreamWeights::kEnter:
      return launch_fold<Streams, StreamWeights::kEnter>(args, stream);
    case StreamWeights::kGive:
      return launch_fold<Streams, StreamWeights::kGive>(args, stream);
    default:
      return launch_fold<Streams, StreamWeights::kMix>(args, stream);
  }
}

}  // namespace

void launch_fold_streams(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<FoldStreamsArgs>(packed);
  static_assert(kMaxHyperStreams == 4);
  switch (args.num_streams) {
    case 2:
      return launch_fold_of<2>(args, stream);
    case 3:
      return launch_fold_of<3>(args, stream);
    default:
      return launch_fold_of<4>(args, stream);
  }
}

}  // namespace foretoken::cuda
