#include "kernels/linear/gated_norm.h"

#include "kernels/activation_math.h"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;

__device__ float gate_factor(NormGate gate, float x) {
  const float share = activation_math::sigmoid(x);
  return gate == NormGate::kSilu ? x * share : share;
}

// One block: a group of a row.
template <class T>
__global__ void __launch_bounds__(kThreads) gated_norm_kernel(GatedNormArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const int64_t at = int64_t{blockIdx.y} * args.group_size;
  const int64_t first = int64_t{row} * args.num_groups * args.group_size + at;
  const float* x = args.x + first;
  const bool gated = args.gate != NormGate::kNone;
  const float* gates = gated ? args.gates + int64_t{row} * args.gate_stride + at : nullptr;
  const auto value_at = [&](int i) {
    return gated && args.gates_first != 0 ? x[i] * gate_factor(args.gate, gates[i]) : x[i];
  };
  float factor = 1.0f;
  const float* weights = args.weights;
  if (weights != nullptr) {
    float squares = 0;
    for (int i = threadIdx.x; i < args.group_size; i += kThreads) {
      const float value = value_at(i);
      squares = fmaf(value, value, squares);
    }
    const float mean = block_sum<kThreads>(squares) / static_cast<float>(args.group_size);
    factor = 1.0f / sqrtf(mean + args.eps);
    if (args.own_weights != 0) weights += at;
  }
  T* out = static_cast<T*>(args.out) + first;
  for (int i = threadIdx.x; i < args.group_size; i += kThreads) {
    float value = value_at(i);
    if (weights != nullptr) value = value * factor * weights[i];
    if (gated && args.gates_first == 0) value *= gate_factor(args.gate, gates[i]);
    out[i] = from_float<T>(value);
  }
}

}  // namespace

void launch_gated_norm(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GatedNormArgs>(packed);
  const auto kernel =
      args.dtype == DType::kBF16 ? gated_norm_kernel<__nv_bfloat16> : gated_norm_kernel<float>;
  launch_kernel(kernel, dim3(args.max_rows, args.num_groups), kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
