#include "kernels/linear/linear_inputs.h"

#include "kernels/attention/gate_heads.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kCached = kMaxLinearKeyDim / 32;  // numbers of a lane

using activation_math::mul;

__device__ float activated(const LinearInputsArgs& args, float x) {
  return args.silu != 0 ? mul(x, activation_math::sigmoid(x)) : x;
}

// A head of q or k, in a warp.
struct KeyHead {
  float values[kCached];

  __device__ void load(const LinearInputsArgs& args, const float* from) {
#pragma unroll
    for (int j = 0; j < kCached; ++j) {
      const int i = threadIdx.x % 32 + j * 32;
      values[j] = i < args.shape.key_dim ? from[i] : 0.0f;
    }
  }
  __device__ void write(const LinearInputsArgs& args, float* to, float scale) {
    float squares = 0;
#pragma unroll
    for (int j = 0; j < kCached; ++j) {
      values[j] = activated(args, values[j]);
      squares = fmaf(values[j], values[j], squares);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    }
    const float factor = args.unit != 0 ? scale / sqrtf(squares + 1e-6f) : scale;
#pragma unroll
    for (int j = 0; j < kCached; ++j) {
      const int i = threadIdx.x % 32 + j * 32;
      if (i < args.shape.key_dim) to[i] = mul(values[j], factor);
    }
  }
};

__device__ float decay_of(float rate, float step) {
  return sample_math::exp_nonpositive(mul(-rate, step));
}

// What the row has for decay `i`.
__device__ float decay_input(const LinearInputsArgs& args, int row, int i) {
  const float bias = args.decay_bias == nullptr ? 0.0f : args.decay_bias[i];
  return activation_math::add(args.decay[int64_t{row} * args.decay_stride + i], bias);
}

__device__ float step_of(const LinearInputsArgs& args, int row, int i) {
  return gate_softplus(decay_input(args, row, i));
}

// Of kDelta and kBounded.
__device__ float delta_decay(const LinearInputsArgs& args, float rate, int row, int i) {
  if (args.gates == LinearGates::kDelta) return decay_of(rate, step_of(args, row, i));
  const float share = activation_math::sigmoid(mul(rate, decay_input(args, row, i)));
  return sample_math::exp_nonpositive(mul(args.lower_bound, share));
}

__device__ void write_decays(const LinearInputsArgs& args, int row, int head, float* out) {
  const LinearShape& shape = args.shape;
  float* decays = out + shape.decay_offset();
  const float rate = args.rates[head];
  const int lane = threadIdx.x % 32;
  if (shape.channel_decay) {
    for (int i = lane; i < shape.key_dim; i += 32) {
      const int at = head * shape.key_dim + i;
      decays[at] = delta_decay(args, rate, row, at);
    }
  }
  if (lane != 0) return;
  if (args.gates == LinearGates::kFixed) {
    decays[head] = decay_of(rate, 1.0f);
  } else if (args.gates == LinearGates::kStep) {
    const float step = activation_math::at_most(
        activation_math::at_least(step_of(args, row, head), args.min_step), args.max_step);
    decays[head] = decay_of(rate, step);
    out[shape.scale_offset() + head] = step;
  } else {
    if (!shape.channel_decay) decays[head] = delta_decay(args, rate, row, head);
    out[shape.scale_offset() + head] =
        mul(args.scale_factor,
            activation_math::sigmoid(args.scale[int64_t{row} * args.scale_stride + head]));
  }
}

// One warp: a key head of a row, behind these a value head with its gates.
__global__ void __launch_bounds__(kThreads) linear_inputs_kernel(LinearInputsArgs args) {
  wait_for_previous();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const LinearShape& shape = args.shape;
  float* out = args.out + int64_t{row} * shape.row_size();
  const int64_t at = int64_t{row} * args.stride;
  const int unit = blockIdx.y * (kThreads / 32) + threadIdx.x / 32;
  if (unit < shape.key_heads) {
    const int head = unit * shape.key_dim;
    KeyHead q, k;
    q.load(args, args.q + at + head);
    k.load(args, args.k + at + head);
    q.write(args, out + head, args.q_scale);
    k.write(args, out + shape.k_offset() + head, 1.0f);
    return;
  }
  const int head = unit - shape.key_heads;
  if (head >= shape.value_heads) return;
  const int first = head * shape.value_dim;
  for (int i = threadIdx.x % 32; i < shape.value_dim; i += 32) {
    out[shape.v_offset() + first + i] = activated(args, args.v[at + first + i]);
  }
  write_decays(args, row, head, out);
}

}  // namespace

void launch_linear_inputs(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LinearInputsArgs>(packed);
  const int heads = args.shape.key_heads + args.shape.value_heads;
  const dim3 grid(args.max_rows, ceil_div(heads, kThreads / 32));
  launch_kernel(linear_inputs_kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
