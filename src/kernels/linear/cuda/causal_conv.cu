#include "kernels/linear/causal_conv.h"

#include "kernels/activation_math.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/linear/state_run.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

using activation_math::add;
using activation_math::mul;

__device__ StateRows rows_of(const CausalConvArgs& args) {
  return {args.positions, args.row_slot, live_rows(args.counts, RowKind::kToken, 0, args.max_rows)};
}

__device__ float input_of(const CausalConvArgs& args, int row, int channel) {
  const int64_t at = int64_t{row} * args.stride + channel;
  return args.x_gate == nullptr ? args.x[at] : mul(args.x[at], args.x_gate[at]);
}

__device__ float& kept_input(const CausalConvArgs& args, int slot, int position, int channel) {
  const int64_t row = int64_t{slot} * args.history_rows + position % args.history_rows;
  return args.history[row * args.channels + channel];
}

// The input so many positions before that of `row`.
__device__ float input_before(const CausalConvArgs& args, const StateRows& rows, int row, int back,
                              int channel) {
  const int position = args.positions[row] - back;
  if (position < 0) return 0.0f;
  if (rows.same_run(row, row - back)) return input_of(args, row - back, channel);
  return kept_input(args, args.row_slot[row], position, channel);
}

__device__ void keep_input(const CausalConvArgs& args, const StateRows& rows, int row,
                           int channel) {
  if (rows.same_run(row, row + args.history_rows)) return;
  kept_input(args, args.row_slot[row], args.positions[row], channel) = input_of(args, row, channel);
}

// One thread: a channel of a row. `keeps`: no row of the launch reads the place of another one's
// input in the history.
template <class T>
__global__ void __launch_bounds__(kThreads) causal_conv_kernel(CausalConvArgs args, bool keeps) {
  wait_for_previous();
  let_next_start();
  const StateRows rows = rows_of(args);
  const int row = blockIdx.x, channel = blockIdx.y * kThreads + threadIdx.x;
  if (row >= rows.count || channel >= args.channels) return;
  float sum = args.bias == nullptr ? 0.0f : args.bias[channel];
  const float* weights = args.weights + int64_t{channel} * args.width;
  for (int j = 0; j < args.width; ++j) {
    sum = add(sum, mul(weights[j], input_before(args, rows, row, args.width - 1 - j, channel)));
  }
  if (args.silu != 0) sum = mul(sum, activation_math::sigmoid(sum));
  if (args.out_gate != nullptr) {
    sum = mul(sum, args.out_gate[int64_t{row} * args.stride + channel]);
  }
  static_cast<T*>(args.out)[int64_t{row} * args.channels + channel] = from_float<T>(sum);
  if (keeps) keep_input(args, rows, row, channel);
}

// Behind it, where a run may be long enough to reach the places that its first rows read.
__global__ void __launch_bounds__(kThreads) keep_inputs_kernel(CausalConvArgs args) {
  wait_for_previous();
  let_next_start();
  const StateRows rows = rows_of(args);
  const int row = blockIdx.x, channel = blockIdx.y * kThreads + threadIdx.x;
  if (row < rows.count && channel < args.channels) keep_input(args, rows, row, channel);
}

}  // namespace

void launch_causal_conv(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<CausalConvArgs>(packed);
  const bool keeps = args.max_rows + args.width - 1 <= args.history_rows;
  const dim3 grid(args.max_rows, ceil_div(args.channels, kThreads));
  const auto kernel = args.out_dtype == DType::kBF16 ? causal_conv_kernel<__nv_bfloat16>
                                                     : causal_conv_kernel<float>;
  launch_kernel(kernel, grid, kThreads, 0, stream, args, keeps);
  if (!keeps) launch_kernel(keep_inputs_kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
