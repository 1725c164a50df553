#include "kernels/latent/latent_q.h"

#include "kernels/attention/cuda/rotation.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kHeadsPerBlock = 8;

// One block: one row, kHeadsPerBlock of its heads.
template <class T>
__global__ void __launch_bounds__(kThreads) latent_q_kernel(LatentQArgs args) {
  __shared__ float2 turns[kMaxHeadDim / 2];  // (cos, sin)
  wait_for_all_before();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const int half = args.rope_dim / 2;
  const float position = turning_position(args.positions, row, args.position_shift);
  for (int i = threadIdx.x; i < half; i += kThreads) {
    turns[i] = turn_at(args.inv_freq, i, position, args.scaling);
  }
  __syncthreads();
  const float scale = query_scale_at(args.query_scale, position);
  const int first = blockIdx.y * kHeadsPerBlock;
  const int count = min(kHeadsPerBlock, args.num_heads - first);
  const int dim = args.nope_dim + args.rope_dim;
  const int entry = args.kv_rank + args.rope_dim;
  const float* x = args.x + int64_t{row} * args.x_stride + int64_t{first} * dim;
  const int64_t head = int64_t{row} * args.num_heads + first;
  T* nope = static_cast<T*>(args.nope) + head * args.nope_dim;
  T* q = static_cast<T*>(args.q) + head * entry + args.kv_rank;
  for (int e = threadIdx.x; e < count * dim; e += kThreads) {
    const int h = e / dim;
    const int at = e % dim;
    const float* from = x + h * dim;
    if (at < args.nope_dim) {
      nope[h * args.nope_dim + at] = from_float<T>(from[at] * scale);
      continue;
    }
    const float* part = from + args.nope_dim;
    const int i = at - args.nope_dim;
    const float2 by = turns[i < half ? i : i - half];
    const float turned =
        i < half ? part[i] * by.x - part[i + half] * by.y : part[i] * by.x + part[i - half] * by.y;
    q[h * entry + i] = from_float<T>(turned * scale);
  }
}

}  // namespace

void launch_latent_q(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LatentQArgs>(packed);
  const dim3 grid(args.max_rows, ceil_div(args.num_heads, kHeadsPerBlock));
  const auto kernel =
      args.dtype == DType::kBF16 ? latent_q_kernel<__nv_bfloat16> : latent_q_kernel<float>;
  launch_kernel(kernel, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
