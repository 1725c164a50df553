#include "kernels/experts/combine_experts.h"

#include "kernels/activation_math.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

// A thread sums one column of one row over the row's choices.
template <class T>
__global__ void __launch_bounds__(kThreads) combine_kernel(CombineExpertsArgs args) {
  wait_for_previous();
  const int row = static_cast<int>(blockIdx.y);
  const int column = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  if (column >= args.hidden) return;
  const int64_t at = int64_t{row} * args.hidden + column;
  float sum = 0;
  if (args.shared != nullptr) {
    const float scale =
        args.shared_gate != nullptr ? activation_math::sigmoid(args.shared_gate[row]) : 1.0f;
    sum = __fmul_rn(args.shared[at], scale);
  }
  const auto* y = static_cast<const T*>(args.y) + int64_t{row} * args.top_k * args.hidden + column;
  const int32_t* ids = args.ids + int64_t{row} * args.top_k;
  for (int slot = 0; slot < args.top_k; ++slot) {
    const int own = ids[slot] - args.first_expert;
    if (own < 0 || own >= args.num_own) continue;
    const float weight =
        args.weights != nullptr ? args.weights[int64_t{row} * args.top_k + slot] : 1.0f;
    sum = fmaf(weight, to_float(y[int64_t{slot} * args.hidden]), sum);
  }
  args.out[at] = args.add != 0 ? __fadd_rn(args.out[at], sum) : sum;
}

}  // namespace

void launch_combine_experts(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<CombineExpertsArgs>(packed);
  const dim3 grid(ceil_div(args.hidden, kThreads), args.max_rows);
  launch_kernel(args.dtype == DType::kBF16 ? combine_kernel<__nv_bfloat16> : combine_kernel<float>,
                grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
