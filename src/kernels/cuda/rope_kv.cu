#include "kernels/rope_kv.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kHeadsPerBlock = kThreads / 32;  // a warp sums the squares of each

// Where a head's result goes: q_out, or the entry of the row in the K or V cache.
template <class T>
__device__ T* destination(const RopeKvArgs& args, int row, int head) {
  const KvLayer& kv = args.kv;
  if (head < args.num_heads) {
    return static_cast<T*>(args.q_out) + (int64_t{row} * args.num_heads + head) * kv.head_dim;
  }
  const int kv_head = (head - args.num_heads) % kv.num_kv_heads;
  const bool is_key = head < args.num_heads + kv.num_kv_heads;
  const int slot = args.kv_slot[row];
  const int64_t entry =
      (int64_t{slot / kv.block_size} * kv.num_kv_heads + kv_head) * kv.block_size +
      slot % kv.block_size;
  return static_cast<T*>(is_key ? kv.k : kv.v) + entry * kv.head_dim;
}

// Weight of the norm of q, k or v head number `head`; null: the head is taken as it is.
__device__ const float* norm_weight(const RopeKvArgs& args, int head) {
  if (head < args.num_heads) return args.q_norm;
  return head < args.num_heads + args.kv.num_kv_heads ? args.k_norm : nullptr;
}

// 1 / sqrt(mean(x^2) + eps), for each lane of the warp.
__device__ float norm_factor(const float* x, int dim, float eps) {
  float squares = 0;
  for (int i = threadIdx.x % 32; i < dim; i += 32) squares = fmaf(x[i], x[i], squares);
  for (int offset = 16; offset > 0; offset /= 2) {
    squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  }
  return 1.0f / sqrtf(squares / static_cast<float>(dim) + eps);
}

// One block: one row, kHeadsPerBlock of its q, k and v heads.
template <class T>
__global__ void __launch_bounds__(kThreads) rope_kv_kernel(RopeKvArgs args) {
  __shared__ float cosines[kMaxHeadDim / 2];
  __shared__ float sines[kMaxHeadDim / 2];
  __shared__ float factors[kHeadsPerBlock];
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const int half = args.inv_freq == nullptr ? 0 : args.rotary_dim / 2;
  const float position = static_cast<float>(max(args.positions[row] + args.position_shift, 0));
  for (int i = threadIdx.x; i < half; i += kThreads) {
    float sine, cosine;
    sincosf(__fmul_rn(position, args.inv_freq[i]), &sine, &cosine);
    cosines[i] = cosine * args.scaling;
    sines[i] = sine * args.scaling;
  }
  const int dim = args.kv.head_dim;
  const int num_rotated = args.num_heads + args.kv.num_kv_heads;
  const int num_heads = num_rotated + args.kv.num_kv_heads;
  const int first = blockIdx.y * kHeadsPerBlock;
  const int count = min(kHeadsPerBlock, num_heads - first);
  const float* x = args.qkv + (int64_t{row} * num_heads + first) * dim;
  const int warp = threadIdx.x / 32;
  if (warp < count && norm_weight(args, first + warp) != nullptr) {
    factors[warp] = norm_factor(x + warp * dim, dim, args.norm_eps);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < count * dim; e += kThreads) {
    const int head = e / dim;
    const int i = e % dim;
    const float* weight = norm_weight(args, first + head);
    const auto value_at = [&](int at) {
      const float value = x[head * dim + at];
      return weight == nullptr ? value : value * factors[head] * weight[at];
    };
    float value = value_at(i);
    if (first + head < num_rotated && i < half) {
      value = value * cosines[i] - value_at(i + half) * sines[i];
    } else if (first + head < num_rotated && i < 2 * half) {
      value = value * cosines[i - half] + value_at(i - half) * sines[i - half];
    }
    destination<T>(args, row, first + head)[i] = from_float<T>(value);
  }
}

}  // namespace

void launch_rope_kv(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<RopeKvArgs>(packed);
  const auto kernel =
      args.kv.dtype == DType::kBF16 ? rope_kv_kernel<__nv_bfloat16> : rope_kv_kernel<float>;
  const int heads = args.num_heads + 2 * args.kv.num_kv_heads;
  launch_kernel(kernel, dim3(args.max_rows, ceil_div(heads, kHeadsPerBlock)), kThreads, 0, stream,
                args);
}

}  // namespace foretoken::cuda
