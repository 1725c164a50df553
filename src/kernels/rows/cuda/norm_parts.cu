#include "kernels/rows/norm_parts.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

// A block has kThreads columns of a part of a row.
template <class T>
__global__ void __launch_bounds__(kThreads) norm_parts_kernel(NormPartsArgs args) {
  wait_for_previous();
  let_next_start();
  const int64_t row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const RowPart& part = args.parts[blockIdx.z];
  const float* weights = args.weights[blockIdx.z];
  const int i = blockIdx.y * kThreads + threadIdx.x;
  if (i >= part.count) return;
  const int group = (part.begin + i) / part.group;
  const float squares = args.entries[row * args.num_entries + part.entry + group];
  const float factor = 1.0f / sqrtf(squares / static_cast<float>(part.group) + args.eps);
  const int64_t at = row * args.stride + part.column + i;
  const float normed = args.x[at] * factor;
  static_cast<T*>(args.out)[at] = from_float<T>(weights == nullptr ? normed : normed * weights[i]);
}

}  // namespace

void launch_norm_parts(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<NormPartsArgs>(packed);
  int widest = 0;
  for (int i = 0; i < args.num_parts; ++i) {
    widest = args.parts[i].count > widest ? args.parts[i].count : widest;
  }
  const dim3 grid(args.max_rows, ceil_div(widest, kThreads), args.num_parts);
  if (args.out_dtype == DType::kBF16) {
    launch_kernel(norm_parts_kernel<__nv_bfloat16>, grid, kThreads, 0, stream, args);
  } else {
    launch_kernel(norm_parts_kernel<float>, grid, kThreads, 0, stream, args);
  }
}

}  // namespace foretoken::cuda
