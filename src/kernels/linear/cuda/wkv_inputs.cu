#include "kernels/linear/wkv_inputs.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/linear/wkv_head.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;  // a warp a head
constexpr int kHeads = kThreads / 32;

__global__ void __launch_bounds__(kThreads) wkv_inputs_kernel(WkvInputsArgs args) {
  wait_for_previous();
  const int row = blockIdx.x;
  const int head = blockIdx.y * kHeads + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  if (head >= args.shape.value_heads) return;
  const int dim = args.shape.key_dim, first = head * dim;
  const int64_t at = int64_t{row} * args.shape.v_size();
  float squares = 0;
  for (int i = first + lane; i < first + dim; i += 32) {
    const float scaled = args.k[at + i] * args.key_scale[i];
    squares = fmaf(scaled, scaled, squares);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  }
  const float inverse = 1.0f / fmaxf(sqrtf(squares), kWkvLeastLength);
  float* out = args.out + int64_t{row} * args.shape.row_size();
  for (int i = first + lane; i < first + dim; i += 32) {
    write_wkv_input(args, at + i, i, inverse, out);
  }
}

}  // namespace

void launch_wkv_inputs(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<WkvInputsArgs>(packed);
  const dim3 grid(args.max_rows, ceil_div(args.shape.value_heads, kHeads));
  launch_kernel(wkv_inputs_kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
