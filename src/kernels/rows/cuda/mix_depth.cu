#include "kernels/rows/mix_depth.h"

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/sample_math.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;

// One block: one row. Each thread reads what it alone writes, so that `out` may be the residual.
__global__ void __launch_bounds__(kThreads) mix_depth_kernel(MixDepthArgs args) {
  __shared__ float shares[kMaxDepthBlocks + 1];
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const int size = args.size, count = args.num_blocks + 1;
  const int64_t stride = int64_t{args.block_rows} * size, at = int64_t{row} * size;
  float* residual = args.residual + at;
  if (args.delta != nullptr) {
    for (int i = threadIdx.x; i < size; i += kThreads) {
      residual[i] = __fadd_rn(residual[i], args.delta[at + i]);
    }
  }
  const auto value_at = [&](int j, int i) {
    return j < args.num_blocks ? args.blocks[j * stride + at + i] : residual[i];
  };
  for (int j = 0; j < count; ++j) {
    float squares = 0, met = 0;
    for (int i = threadIdx.x; i < size; i += kThreads) {
      const float value = value_at(j, i);
      squares = fmaf(value, value, squares);
      met = fmaf(value, args.weights[i], met);
    }
    const float mean = block_sum<kThreads>(squares) / static_cast<float>(size);
    __syncthreads();  // block_sum has one buffer
    const float all = block_sum<kThreads>(met);
    __syncthreads();
    if (threadIdx.x == 0) shares[j] = all / sqrtf(mean + args.eps);
  }
  __syncthreads();
  float highest = shares[0], sum = 0;
  for (int j = 1; j < count; ++j) highest = fmaxf(highest, shares[j]);
  for (int j = 0; j < count; ++j) sum += sample_math::exp_nonpositive(shares[j] - highest);
  for (int i = threadIdx.x; i < size; i += kThreads) {
    float mixed = 0;
    for (int j = 0; j < count; ++j) {
      const float share = sample_math::exp_nonpositive(shares[j] - highest) / sum;
      mixed = __fadd_rn(mixed, __fmul_rn(share, value_at(j, i)));
    }
    args.out[at + i] = mixed;
  }
}

}  // namespace

void launch_mix_depth(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<MixDepthArgs>(packed);
  launch_kernel(mix_depth_kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
