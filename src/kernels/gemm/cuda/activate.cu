#include "kernels/gemm/activate.h"

#include "kernels/activation_math.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;

__device__ float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

template <Activation kActivation>
__device__ float activated(float x, const float* parameters) {
  if constexpr (kActivation == Activation::kReluSquared) {
    const float positive = fmaxf(x, 0.0f);
    return positive * positive;
  } else if constexpr (kActivation == Activation::kRelu) {
    return fmaxf(x, 0.0f);
  } else if constexpr (kActivation == Activation::kTanh) {
    return activation_math::tanh_of(x);
  } else if constexpr (kActivation == Activation::kSigmoid) {
    return activation_math::sigmoid(x);
  } else if constexpr (kActivation == Activation::kXielu) {
    const float beta = parameters[2];
    if (x > 0.0f) return fmaf(softplus(parameters[0]) * x, x, beta * x);
    const float negative = beta + softplus(parameters[1]);
    return fmaf(expm1f(fminf(x, parameters[3])) - x, negative, beta * x);
  } else {
    return activation_math::gated<kActivation>(x, 1.0f);
  }
}

template <Activation kActivation, class T>
__global__ void activate_kernel(ActivateArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const float* x = args.x + int64_t{row} * args.size;
  T* out = static_cast<T*>(args.out) + int64_t{row} * args.size;
  const int begin = blockIdx.y * kThreads * kPerThread + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int i = begin + j * kThreads;
    if (i >= args.size) break;
    out[i] = from_float<T>(activated<kActivation>(x[i], args.parameters));
  }
}

template <Activation kActivation>
void launch(const ActivateArgs& args, cudaStream_t stream) {
  const auto kernel = args.out_dtype == DType::kBF16 ? activate_kernel<kActivation, __nv_bfloat16>
                                                     : activate_kernel<kActivation, float>;
  const dim3 grid(args.max_rows, ceil_div(args.size, kThreads * kPerThread));
  launch_kernel(kernel, grid, kThreads, 0, stream, args);
}

}  // namespace

void launch_activate(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ActivateArgs>(packed);
  switch (args.activation) {
    case Activation::kSilu:
      return launch<Activation::kSilu>(args, stream);
    case Activation::kGelu:
      return launch<Activation::kGelu>(args, stream);
    case Activation::kGeluTanh:
      return launch<Activation::kGeluTanh>(args, stream);
    case Activation::kReluSquared:
      return launch<Activation::kReluSquared>(args, stream);
    case Activation::kXielu:
      return launch<Activation::kXielu>(args, stream);
    case Activation::kRelu:
      return launch<Activation::kRelu>(args, stream);
    case Activation::kTanh:
      return launch<Activation::kTanh>(args, stream);
    case Activation::kSigmoid:
      return launch<Activation::kSigmoid>(args, stream);
    case Activation::kClampedSilu:  // of gates alone
    case Activation::kSitu:
      return;
  }
}

}  // namespace foretoken::cuda
