#include "kernels/attention/cuda/rotation.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/linear/turn_heads.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;  // a warp a head
constexpr int kHeads = kThreads / 32;

// Each lane reads what it alone writes, once the squares of the head are summed.
__global__ void __launch_bounds__(kThreads) turn_heads_kernel(TurnHeadsArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  const int head = blockIdx.y * kHeads + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  if (head >= args.num_queries + args.num_keys) return;
  const int dim = args.head_dim;
  float* x = args.x + int64_t{row} * args.stride + head * dim;
  const float* weight = head < args.num_queries ? args.q_norm : args.k_norm;
  float factor = 1;
  if (weight != nullptr) {
    float squares = 0;
    for (int i = lane; i < dim; i += 32) squares = fmaf(x[i], x[i], squares);
    for (int offset = 16; offset > 0; offset /= 2) {
      squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    }
    factor = 1.0f / sqrtf(squares / static_cast<float>(dim) + args.eps);
  }
  const auto value_at = [&](int i) { return weight == nullptr ? x[i] : x[i] * factor * weight[i]; };
  const int half = args.inv_freq == nullptr ? 0 : args.rotary_dim / 2;
  const float position = turning_position(args.positions, row, 0);
  for (int i = lane; i < half; i += 32) {
    float low = value_at(i), high = value_at(half + i);
    turn(low, high, turn_at(args.inv_freq[i], position, args.scaling));
    x[i] = low;
    x[half + i] = high;
  }
  for (int i = 2 * half + lane; i < dim; i += 32) x[i] = value_at(i);
}

}  // namespace

void launch_turn_heads(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<TurnHeadsArgs>(packed);
  const dim3 grid(args.max_rows, ceil_div(args.num_queries + args.num_keys, kHeads));
  launch_kernel(turn_heads_kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
