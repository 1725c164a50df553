#include "kernels/rows/softcap.h"

#include "kernels/activation_math.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;

__global__ void softcap_kernel(SoftcapArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, args.row_kind, args.row_offset, args.max_rows)) return;
  const float inverse = args.cap > 0 ? __fdiv_rn(1.0f, args.cap) : 0.0f;
  float* x = args.x + int64_t{row} * args.size;
  const int begin = blockIdx.y * kThreads * kPerThread + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int i = begin + j * kThreads;
    if (i >= args.size) break;
    const float scaled = __fmul_rn(x[i], args.scale);
    x[i] = args.cap > 0 ? activation_math::soft_capped(scaled, args.cap, inverse) : scaled;
  }
}

}  // namespace

void launch_softcap(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SoftcapArgs>(packed);
  const dim3 grid(args.max_rows, ceil_div(args.size, kThreads * kPerThread));
  launch_kernel(softcap_kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
