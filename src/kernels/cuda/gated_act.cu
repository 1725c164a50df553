#include "kernels/silu_mul.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;

template <class T>
__global__ void silu_mul_kernel(SiluMulArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.y;
  if (row >= args.counts->num_rows) return;
  const float* gate = args.gate_up + int64_t{row} * 2 * args.size;
  const float* up = gate + args.size;
  T* out = static_cast<T*>(args.out) + int64_t{row} * args.size;
  const int begin = blockIdx.x * kThreads * kPerThread + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int i = begin + j * kThreads;
    if (i >= args.size) break;
    const float g = gate[i];
    out[i] = from_float<T>(g / (1.0f + expf(-g)) * up[i]);
  }
}

}  // namespace

void launch_silu_mul(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SiluMulArgs>(packed);
  const auto kernel =
      args.out_dtype == DType::kBF16 ? silu_mul_kernel<__nv_bfloat16> : silu_mul_kernel<float>;
  const dim3 grid(ceil_div(args.size, kThreads * kPerThread), args.max_rows);
  launch_kernel(kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
