#include "kernels/attention/gate_heads.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;

template <class T>
__global__ void __launch_bounds__(kThreads) gate_heads_kernel(GateHeadsArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const int size = args.num_heads * args.head_dim;
  T* x = static_cast<T*>(args.x) + int64_t{row} * size;
  const bool own = args.each_element != 0;
  const float* gates = args.gates + int64_t{row} * (own ? size : args.num_heads);
  const int begin = blockIdx.y * kThreads * kPerThread + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int i = begin + j * kThreads;
    if (i >= size) break;
    const float factor = head_gate(args.gate, gates[own ? i : i / args.head_dim]);
    x[i] = from_float<T>(__fmul_rn(to_float(x[i]), factor));
  }
}

}  // namespace

void launch_gate_heads(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GateHeadsArgs>(packed);
  const auto kernel =
      args.dtype == DType::kBF16 ? gate_heads_kernel<__nv_bfloat16> : gate_heads_kernel<float>;
  const dim3 grid(args.max_rows, ceil_div(args.num_heads * args.head_dim, kThreads * kPerThread));
  launch_kernel(kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
