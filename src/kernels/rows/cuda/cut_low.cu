#include "kernels/rows/cut_low.h"

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;

// One block: one row. Each thread reads what it alone writes.
__global__ void __launch_bounds__(kThreads) cut_low_kernel(CutLowArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  float* x = args.x + int64_t{row} * args.stride;
  const float size = static_cast<float>(args.size);
  float total = 0;
  for (int i = threadIdx.x; i < args.size; i += kThreads) total = __fadd_rn(total, x[i]);
  const float mean = block_sum<kThreads>(total) / size;
  __syncthreads();  // block_sum has one buffer
  float squares = 0;
  for (int i = threadIdx.x; i < args.size; i += kThreads) {
    const float apart = __fsub_rn(x[i], mean);
    squares = fmaf(apart, apart, squares);
  }
  const float least = __fmul_rn(args.deviations, sqrtf(block_sum<kThreads>(squares) / size));
  for (int i = threadIdx.x; i < args.size; i += kThreads) {
    x[i] = fmaxf(__fsub_rn(__fsub_rn(x[i], mean), least), 0.0f);
  }
}

}  // namespace

void launch_cut_low(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<CutLowArgs>(packed);
  launch_kernel(cut_low_kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
