#include "kernels/rows/fold_streams.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/rows/hyper_math.h"

namespace foretoken::cuda {
namespace {

constexpr int kFoldThreads = 256;
constexpr int kFoldWarps = kFoldThreads / 32;
constexpr int kMaxMadeWeights = num_hyper_weights(kMaxHyperStreams, true);

// One block: one row. Every thread has its columns of all products, which are then added up in a
// fixed order; the last one is the sum of squares.
__global__ void __launch_bounds__(kFoldThreads) fold_streams_kernel(FoldStreamsArgs args) {
  __shared__ float parts[kFoldWarps][kMaxMadeWeights + 1];
  __shared__ float products[kMaxMadeWeights];
  __shared__ float shares[kMaxHyperStreams];
  wait_for_previous();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const int width = args.num_streams * args.size;
  const float* streams = args.streams + int64_t{row} * width;
  const int made = num_hyper_weights(args.num_streams, args.weights != nullptr);
  float sums[kMaxMadeWeights + 1] = {};
  for (int c = threadIdx.x; c < width; c += kFoldThreads) {
    const float x = streams[c];
#pragma unroll
    for (int i = 0; i < kMaxMadeWeights; ++i) {
      if (i < made) sums[i] += x * args.fn[int64_t{i} * width + c];
    }
    sums[kMaxMadeWeights] += x * x;
  }
#pragma unroll
  for (int i = 0; i <= kMaxMadeWeights; ++i) {
    for (int offset = 16; offset > 0; offset /= 2) {
      sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], offset);
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32][i] = sums[i];
  }
  __syncthreads();
  if (threadIdx.x < made) {
    float squares = 0, sum = 0;
    for (int w = 0; w < kFoldWarps; ++w) {
      squares += parts[w][kMaxMadeWeights];
      sum += parts[w][threadIdx.x];
    }
    const float mean = squares / static_cast<float>(width);
    products[threadIdx.x] = sum * (1.0f / sqrtf(mean + args.norm_eps));
  }
  __syncthreads();
  if (threadIdx.x < args.num_streams) {
    shares[threadIdx.x] = hyper_math::entering(args, products, threadIdx.x);
  }
  __syncthreads();
  for (int c = threadIdx.x; c < args.size; c += kFoldThreads) {
    float sum = __fmul_rn(shares[0], streams[c]);
    for (int s = 1; s < args.num_streams; ++s) {
      sum = __fadd_rn(sum, __fmul_rn(shares[s], streams[int64_t{s} * args.size + c]));
    }
    args.folded[int64_t{row} * args.size + c] = sum;
  }
  if (args.weights == nullptr || threadIdx.x > 0) return;
  const int each = args.num_streams * (1 + args.num_streams);
  hyper_math::mixing_weights(args, products, args.weights + int64_t{row} * each);
}

}  // namespace

void launch_fold_streams(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<FoldStreamsArgs>(packed);
  launch_kernel(fold_streams_kernel, args.max_rows, kFoldThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
