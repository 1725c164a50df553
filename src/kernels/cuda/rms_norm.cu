#include "kernels/rms_norm.h"

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;

// One block: one row. Values wait in registers for the sum, Cached of them in each thread; a longer
// row is read again. Either way a thread adds the squares of its columns in ascending order.
template <class T, int Cached>
__global__ void __launch_bounds__(kThreads) rms_norm_kernel(RmsNormArgs args) {
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x;
  const RowKind kind = args.row_index == nullptr ? RowKind::kToken : RowKind::kLogits;
  if (i >= live_rows(args.counts, kind, args.row_offset, args.max_rows)) return;
  const int64_t row = args.row_index == nullptr ? i : args.row_index[args.row_offset + i];
  float* residual = args.residual + row * args.hidden;
  const float* delta = args.delta == nullptr ? nullptr : args.delta + row * args.hidden;
  const auto value_at = [&](int c) {
    return delta == nullptr ? residual[c] : residual[c] + delta[c];
  };
  float cached[Cached];
#pragma unroll
  for (int j = 0; j < Cached; ++j) {
    const int c = threadIdx.x + j * kThreads;
    cached[j] = c < args.hidden ? value_at(c) : 0.0f;
  }
  float squares = 0;
#pragma unroll
  for (int j = 0; j < Cached; ++j) {
    const int c = threadIdx.x + j * kThreads;
    squares = fmaf(cached[j], cached[j], squares);
    if (delta != nullptr && c < args.hidden) residual[c] = cached[j];
  }
  for (int c = threadIdx.x + Cached * kThreads; c < args.hidden; c += kThreads) {
    const float value = value_at(c);
    squares = fmaf(value, value, squares);
    if (delta != nullptr) residual[c] = value;
  }
  const float mean = block_sum<kThreads>(squares) / static_cast<float>(args.hidden);
  const float scale = 1.0f / sqrtf(mean + args.eps);
  T* out = static_cast<T*>(args.out) + int64_t{i} * args.hidden;
#pragma unroll
  for (int j = 0; j < Cached; ++j) {
    const int c = threadIdx.x + j * kThreads;
    if (c < args.hidden) out[c] = from_float<T>(cached[j] * scale * args.weight[c]);
  }
  for (int c = threadIdx.x + Cached * kThreads; c < args.hidden; c += kThreads) {
    out[c] = from_float<T>(residual[c] * scale * args.weight[c]);
  }
}

template <int Cached>
void launch(const RmsNormArgs& args, cudaStream_t stream) {
  const auto kernel = args.out_dtype == DType::kBF16 ? rms_norm_kernel<__nv_bfloat16, Cached>
                                                     : rms_norm_kernel<float, Cached>;
  launch_kernel(kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace

void launch_rms_norm(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<RmsNormArgs>(packed);
  args.hidden <= kThreads ? launch<1>(args, stream) : launch<8>(args, stream);
}

}  // namespace foretoken::cuda
