#include "kernels/gemm/gated_act.h"

#include "kernels/activation_math.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/gemm/gemm.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;

template <Activation kActivation>
__device__ float gated_value(const GateClamp& clamp, float gate, float up) {
  if constexpr (kActivation == Activation::kReluSquared) {
    const float positive = fmaxf(gate, 0.0f);
    return __fmul_rn(__fmul_rn(positive, positive), up);
  } else if constexpr (kActivation == Activation::kRelu) {
    return activation_math::rectified_gated(gate, up);
  } else if constexpr (kActivation == Activation::kGeluShare) {
    return activation_math::share_gated(gate, up);
  } else if constexpr (has_gate_numbers(kActivation)) {
    return activation_math::numbered_gated(kActivation, clamp, gate, up);
  } else {
    return activation_math::gated<kActivation>(gate, up);
  }
}

template <Activation kActivation, class T>
__global__ void gated_act_kernel(GatedActArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const bool raw = args.weight != nullptr;  // 8 gates, their 8 ups, the next 8 gates, ...
  const int stride = raw ? raw_gates_stride(2 * args.size) : 2 * args.size;
  const float* gates = args.gate_up + int64_t{row} * stride;
  T* out = static_cast<T*>(args.out) + int64_t{row} * args.size;
  const int begin = blockIdx.y * kThreads * kPerThread + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int i = begin + j * kThreads;
    if (i >= args.size) break;
    float gate = gates[raw ? i / 8 * 16 + i % 8 : i];
    float up = gates[raw ? i / 8 * 16 + 8 + i % 8 : args.size + i];
    if (args.bias != nullptr) {
      gate += args.bias[i];
      up += args.bias[args.size + i];
    }
    out[i] = from_float<T>(gated_value<kActivation>(args.clamp, gate, up));
  }
}

template <Activation kActivation>
void launch(const GatedActArgs& args, cudaStream_t stream) {
  const auto kernel = args.out_dtype == DType::kBF16 ? gated_act_kernel<kActivation, __nv_bfloat16>
                                                     : gated_act_kernel<kActivation, float>;
  const dim3 grid(args.max_rows, ceil_div(args.size, kThreads * kPerThread));
  launch_kernel(kernel, grid, kThreads, 0, stream, args);
}

}  // namespace

void launch_gated_act(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GatedActArgs>(packed);
  switch (args.activation) {
    case Activation::kSilu:
      return launch<Activation::kSilu>(args, stream);
    case Activation::kGelu:
      return launch<Activation::kGelu>(args, stream);
    case Activation::kReluSquared:
      return launch<Activation::kReluSquared>(args, stream);
    case Activation::kRelu:
      return launch<Activation::kRelu>(args, stream);
    case Activation::kGeluShare:
      return launch<Activation::kGeluShare>(args, stream);
    case Activation::kClampedSilu:
      return launch<Activation::kClampedSilu>(args, stream);
    case Activation::kSitu:
      return launch<Activation::kSitu>(args, stream);
    default:
      return launch<Activation::kGeluTanh>(args, stream);
  }
}

}  // namespace foretoken::cuda
