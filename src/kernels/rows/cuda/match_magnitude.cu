#include "kernels/rows/match_magnitude.h"

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;

// One block: one row. Each thread reads what it alone writes.
__global__ void __launch_bounds__(kThreads) match_magnitude_kernel(MatchMagnitudeArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  float* x = args.x + int64_t{row} * args.size;
  const float* like = args.like + int64_t{row} * args.size;
  const float size = static_cast<float>(args.size);
  float own = 0, wanted = 0;
  for (int i = threadIdx.x; i < args.size; i += kThreads) {
    own = fmaf(x[i], x[i], own);
    wanted = fmaf(like[i], like[i], wanted);
  }
  const float own_square = block_sum<kThreads>(own) / size;
  __syncthreads();  // block_sum has one buffer
  const float wanted_square = block_sum<kThreads>(wanted) / size;
  const float factor = sqrtf(wanted_square) / sqrtf(fmaxf(own_square, args.least));
  for (int i = threadIdx.x; i < args.size; i += kThreads) x[i] = __fmul_rn(x[i], factor);
}

}  // namespace

void launch_match_magnitude(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<MatchMagnitudeArgs>(packed);
  launch_kernel(match_magnitude_kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
