#include "kernels/linear/gated_norm.h"

#include "kernels/activation_math.h"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kEach = 8;  // numbers of a thread that it keeps

__device__ float gate_factor(NormGate gate, float x) {
  const float share = activation_math::sigmoid(x);
  return gate == NormGate::kSilu ? x * share : share;
}

// A group of a row, for the threads that share it.
struct NormGroup {
  const float* x;
  const float* gates;    // or null
  const float* weights;  // or null
  int64_t first;         // of the output
};

__device__ NormGroup group_of(const GatedNormArgs& args, int row, int group) {
  const int64_t at = int64_t{group} * args.group_size;
  const int64_t first = int64_t{row} * args.num_groups * args.group_size + at;
  const bool own = args.weights != nullptr && args.own_weights != 0;
  return {
      args.x + first,
      args.gate != NormGate::kNone ? args.gates + int64_t{row} * args.gate_stride + at : nullptr,
      own ? args.weights + at : args.weights, first};
}

__device__ float norm_factor(const GatedNormArgs& args, float squares) {
  return 1.0f / sqrtf(squares / static_cast<float>(args.group_size) + args.eps);
}

// One block: a group of a row of any size.
template <class T>
__global__ void __launch_bounds__(kThreads) large_norm_kernel(GatedNormArgs args) {
  wait_for_previous();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const NormGroup group = group_of(args, row, blockIdx.y);
  const bool gated = group.gates != nullptr, gates_first = args.gates_first != 0;
  const auto value_at = [&](int i) {
    return gated && gates_first ? group.x[i] * gate_factor(args.gate, group.gates[i]) : group.x[i];
  };
  float factor = 1.0f;
  if (group.weights != nullptr) {
    float squares = 0;
    for (int i = threadIdx.x; i < args.group_size; i += kThreads) {
      const float value = value_at(i);
      squares = fmaf(value, value, squares);
    }
    factor = norm_factor(args, block_sum<kThreads>(squares));
  }
  T* out = static_cast<T*>(args.out) + group.first;
  for (int i = threadIdx.x; i < args.group_size; i += kThreads) {
    float value = value_at(i);
    if (group.weights != nullptr) value = value * factor * group.weights[i];
    if (gated && !gates_first) value *= gate_factor(args.gate, group.gates[i]);
    out[i] = from_float<T>(value);
  }
}

// The same of at most kThreads * kEach numbers, which are read once.
template <class T>
__global__ void __launch_bounds__(kThreads) gated_norm_kernel(GatedNormArgs args) {
  wait_for_previous();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const NormGroup group = group_of(args, row, blockIdx.y);
  const bool gated = group.gates != nullptr, gates_first = args.gates_first != 0;
  float values[kEach], gates[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = threadIdx.x + j * kThreads;
    values[j] = i < args.group_size ? group.x[i] : 0.0f;
    gates[j] = gated && i < args.group_size ? group.gates[i] : 0.0f;
  }
  float squares = 0;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    gates[j] = gated ? gate_factor(args.gate, gates[j]) : 1.0f;
    if (gates_first) values[j] *= gates[j];
    squares = fmaf(values[j], values[j], squares);
  }
  const bool normed = group.weights != nullptr;
  const float factor = normed ? norm_factor(args, block_sum<kThreads>(squares)) : 1.0f;
  T* out = static_cast<T*>(args.out) + group.first;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = threadIdx.x + j * kThreads;
    if (i >= args.group_size) continue;
    float value = normed ? values[j] * factor * group.weights[i] : values[j];
    if (!gates_first) value *= gates[j];
    out[i] = from_float<T>(value);
  }
}

template <class T>
void launch(const GatedNormArgs& args, cudaStream_t stream) {
  const bool is_kept = args.group_size > kThreads && args.group_size <= kThreads * kEach;
  const auto kernel = is_kept ? gated_norm_kernel<T> : large_norm_kernel<T>;
  const dim3 grid(args.max_rows, args.num_groups);
  launch_kernel(kernel, grid, kThreads, 0, stream, args);
}

}  // namespace

void launch_gated_norm(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<GatedNormArgs>(packed);
  args.dtype == DType::kBF16 ? launch<__nv_bfloat16>(args, stream) : launch<float>(args, stream);
}

}  // namespace foretoken::cuda
