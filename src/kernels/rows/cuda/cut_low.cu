#include "kernels/rows/cut_low.h"

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;

// Of one row, by all threads of a block.
__device__ RowMoments moments_of(const float* x, int count) {
  float total = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) total = __fadd_rn(total, x[i]);
  const float mean = block_sum<kThreads>(total) / static_cast<float>(count);
  __syncthreads();  // block_sum has one buffer
  float squares = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const float apart = __fsub_rn(x[i], mean);
    squares = fmaf(apart, apart, squares);
  }
  return {mean, block_sum<kThreads>(squares)};
}

// One block: one row. Each thread reads what it alone writes.
__global__ void __launch_bounds__(kThreads) cut_low_kernel(CutLowArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  float* x = args.x + int64_t{row} * args.stride;
  const float size = static_cast<float>(args.size);
  const bool is_told = args.moments != nullptr;
  const RowMoments all =
      is_told ? joined_moments(args.moments + int64_t{row} * args.num_entries, args.num_parts, size)
              : moments_of(x, args.size);
  const float whole = is_told ? size * static_cast<float>(args.num_parts) : size;
  const float least = __fmul_rn(args.deviations, sqrtf(all.squares / whole));
  for (int i = threadIdx.x; i < args.size; i += kThreads) {
    x[i] = fmaxf(__fsub_rn(__fsub_rn(x[i], all.mean), least), 0.0f);
  }
}

}  // namespace

void launch_cut_low(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<CutLowArgs>(packed);
  launch_kernel(cut_low_kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
