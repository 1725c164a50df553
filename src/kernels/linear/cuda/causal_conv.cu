#include "kernels/linear/causal_conv.h"

#include <cstdint>

#include "kernels/activation_math.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/linear/cuda/state_rows.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;
// Launches of so many rows have threads enough where each takes four channels.
constexpr int kManyRows = 64;

using activation_math::add;
using activation_math::mul;

// Channels of a thread, side by side.
template <class T, int V>
struct alignas(sizeof(T) * V) Channels {
  T at[V];
};
template <int V>
using Floats = Channels<float, V>;

template <int V>
__device__ Floats<V> load(const float* from) {
  return *reinterpret_cast<const Floats<V>*>(from);
}

template <int V>
__device__ Floats<V> input_of(const CausalConvArgs& args, int row, int channel) {
  const int64_t at = int64_t{row} * args.stride + channel;
  Floats<V> x = load<V>(args.x + at);
  if (args.x_gate == nullptr) return x;
  const Floats<V> gates = load<V>(args.x_gate + at);
#pragma unroll
  for (int i = 0; i < V; ++i) x.at[i] = mul(x.at[i], gates.at[i]);
  return x;
}

__device__ float* kept_input(const CausalConvArgs& args, int slot, int position, int channel) {
  const int64_t row = int64_t{slot} * args.history_rows + position % args.history_rows;
  return args.history + row * args.channels + channel;
}

// The input so many positions before that of `row`.
template <int V>
__device__ Floats<V> input_before(const CausalConvArgs& args, const StateRows& rows, int row,
                                  int back, int channel) {
  const int position = args.positions[row] - back;
  if (position < 0) return {};
  if (rows.same_run(row, row - back)) return input_of<V>(args, row - back, channel);
  return load<V>(kept_input(args, args.row_slot[row], position, channel));
}

template <int V>
__device__ void keep_input(const CausalConvArgs& args, const StateRows& rows, int row,
                           int channel) {
  if (rows.same_run(row, row + args.history_rows)) return;
  float* to = kept_input(args, args.row_slot[row], args.positions[row], channel);
  *reinterpret_cast<Floats<V>*>(to) = input_of<V>(args, row, channel);
}

template <int V>
__device__ void add_weighted(const CausalConvArgs& args, int channel, int j, const Floats<V>& input,
                             Floats<V>& sum) {
#pragma unroll
  for (int i = 0; i < V; ++i) {
    sum.at[i] =
        add(sum.at[i], mul(args.weights[int64_t{channel + i} * args.width + j], input.at[i]));
  }
}

// One thread: V channels of a row. `keeps`: no row of the launch reads the place of another one's
// input in the history.
template <class T, int V>
__global__ void __launch_bounds__(kThreads) causal_conv_kernel(CausalConvArgs args, bool keeps) {
  wait_for_previous();
  const StateRows rows = rows_of(args);
  const int row = blockIdx.x, channel = (blockIdx.y * kThreads + threadIdx.x) * V;
  if (row >= rows.count || channel >= args.channels) return;
  Floats<V> inputs[kMaxConvWidth];
#pragma unroll
  for (int j = 0; j < kMaxConvWidth; ++j) {
    if (j < args.width) {
      inputs[j] = input_before<V>(args, rows, row, args.width - 1 - j, channel);
    }
  }
  Floats<V> sum = {};
  if (args.bias != nullptr) sum = load<V>(args.bias + channel);
#pragma unroll
  for (int j = 0; j < kMaxConvWidth; ++j) {
    if (j < args.width) add_weighted<V>(args, channel, j, inputs[j], sum);
  }
  if (args.silu != 0) {
    float shares[V];
#pragma unroll
    for (int i = 0; i < V; ++i) shares[i] = sum.at[i];
    activation_math::sigmoid(shares);
#pragma unroll
    for (int i = 0; i < V; ++i) sum.at[i] = mul(sum.at[i], shares[i]);
  }
  if (args.out_gate != nullptr) {
    const Floats<V> gates = load<V>(args.out_gate + int64_t{row} * args.stride + channel);
#pragma unroll
    for (int i = 0; i < V; ++i) sum.at[i] = mul(sum.at[i], gates.at[i]);
  }
  Channels<T, V> out;
#pragma unroll
  for (int i = 0; i < V; ++i) out.at[i] = from_float<T>(sum.at[i]);
  T* to = static_cast<T*>(args.out) + int64_t{row} * args.channels + channel;
  *reinterpret_cast<Channels<T, V>*>(to) = out;
  if (keeps) keep_input<V>(args, rows, row, channel);
}

// Behind it, where a run may be long enough to reach the places that its first rows read. Only the
// last rows of a run are kept.
template <int V>
__global__ void __launch_bounds__(kThreads) keep_inputs_kernel(CausalConvArgs args, int rows_each) {
  wait_for_previous();
  const StateRows rows = rows_of(args);
  const int channel = (blockIdx.y * kThreads + threadIdx.x) * V;
  const int first = blockIdx.x * rows_each;
  if (channel >= args.channels) return;
  for (int row = first; row < min(first + rows_each, rows.count); ++row) {
    keep_input<V>(args, rows, row, channel);
  }
}

bool on_16_bytes(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

bool has_fours(const CausalConvArgs& args) {
  return args.channels % 4 == 0 && args.stride % 4 == 0 && on_16_bytes(args.x) &&
         on_16_bytes(args.x_gate) && on_16_bytes(args.out_gate) && on_16_bytes(args.bias) &&
         on_16_bytes(args.history) && on_16_bytes(args.out);
}

template <int V>
void launch(const CausalConvArgs& args, cudaStream_t stream) {
  const bool keeps = args.max_rows + args.width - 1 <= args.history_rows;
  const int pieces = ceil_div(args.channels, kThreads * V);
  const auto kernel = args.out_dtype == DType::kBF16 ? causal_conv_kernel<__nv_bfloat16, V>
                                                     : causal_conv_kernel<float, V>;
  launch_kernel(kernel, dim3(args.max_rows, pieces), kThreads, 0, stream, args, keeps);
  if (keeps) return;
  const int rows_each = ceil_div(args.max_rows, 512);
  launch_kernel(keep_inputs_kernel<V>, dim3(ceil_div(args.max_rows, rows_each), pieces), kThreads,
                0, stream, args, rows_each);
}

}  // namespace

void launch_causal_conv(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<CausalConvArgs>(packed);
  args.max_rows >= kManyRows&& has_fours(args) ? launch<4>(args, stream) : launch<1>(args, stream);
}

}  // namespace foretoken::cuda
