#include "kernels/rows/norm_columns.h"

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

// One block: one group of one row. Each thread reads what it alone writes.
template <int Threads>
__global__ void __launch_bounds__(Threads) norm_columns_kernel(NormColumnsArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x, group = blockIdx.y;
  if (row >= args.counts->num_rows) return;
  float* x = args.x + int64_t{row} * args.stride + args.column + int64_t{group} * args.size;
  const float size = static_cast<float>(args.size);
  float mean = 0;
  if (args.centred != 0) {
    float total = 0;
    for (int i = threadIdx.x; i < args.size; i += Threads) total += x[i];
    mean = block_sum<Threads>(total) / size;
    __syncthreads();  // block_sum has one buffer
  }
  float squares = 0;
  for (int i = threadIdx.x; i < args.size; i += Threads) {
    const float apart = x[i] - mean;
    squares = fmaf(apart, apart, squares);
  }
  const float factor = 1.0f / sqrtf(block_sum<Threads>(squares) / size + args.eps);
  const float* weight = args.weight == nullptr ? nullptr : args.weight + int64_t{group} * args.size;
  for (int i = threadIdx.x; i < args.size; i += Threads) {
    const float normed = (x[i] - mean) * factor;
    x[i] = weight == nullptr ? normed : normed * weight[i];
  }
}

}  // namespace

void launch_norm_columns(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<NormColumnsArgs>(packed);
  const dim3 grid(args.max_rows, args.groups);
  if (args.size <= 512) {
    launch_kernel(norm_columns_kernel<64>, grid, 64, 0, stream, args);
  } else {
    launch_kernel(norm_columns_kernel<512>, grid, 512, 0, stream, args);
  }
}

}  // namespace foretoken::cuda
