#include "kernels/linear/wkv_output.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 128;  // a warp a head
constexpr int kHeads = kThreads / 32;

__device__ float sum_of_warp(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

template <class T>
__global__ void __launch_bounds__(kThreads) wkv_output_kernel(WkvOutputArgs args) {
  wait_for_previous();
  const int row = blockIdx.x;
  const int head = blockIdx.y * kHeads + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const LinearShape& shape = args.shape;
  if (head >= shape.value_heads) return;
  const int dim = shape.value_dim, first = head * dim, first_key = head * shape.key_dim;
  const int64_t at = int64_t{row} * shape.v_size() + first;
  const float* packed = args.packed + int64_t{row} * shape.row_size();
  float sum = 0, squares = 0, bonus = 0;
  for (int i = lane; i < dim; i += 32) sum += args.left[at + i];
  const float mean = sum_of_warp(sum) / static_cast<float>(dim);
  for (int i = lane; i < dim; i += 32) {
    const float apart = args.left[at + i] - mean;
    squares = fmaf(apart, apart, squares);
  }
  for (int i = lane; i < shape.key_dim; i += 32) {
    const float product = packed[first_key + i] * packed[shape.k_offset() + first_key + i];
    bonus = fmaf(product, args.bonus[first_key + i], bonus);
  }
  squares = sum_of_warp(squares);
  bonus = sum_of_warp(bonus);
  const float factor = 1.0f / sqrtf(squares / static_cast<float>(dim) + args.eps);
  T* out = static_cast<T*>(args.out) + at;
  for (int i = lane; i < dim; i += 32) {
    const float normed = (args.left[at + i] - mean) * factor * args.weights[first + i];
    const float v = packed[shape.v_offset() + first + i];
    const float value = normed + args.biases[first + i] + bonus * v;
    out[i] = from_float<T>(value * args.gates[at + i]);
  }
}

}  // namespace

void launch_wkv_output(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<WkvOutputArgs>(packed);
  const dim3 grid(args.max_rows, ceil_div(args.shape.value_heads, kHeads));
  const auto kernel =
      args.dtype == DType::kBF16 ? wkv_output_kernel<__nv_bfloat16> : wkv_output_kernel<float>;
  launch_kernel(kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
