#include "kernels/latent/latent_kv.h"

#include "kernels/attention/cuda/fp8_entry.cuh"
#include "kernels/attention/cuda/rotation.cuh"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

// out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i], by the whole block.
template <class T>
__device__ void norm_part(const float* x, const float* weight, int size, float eps, T* out) {
  float squares = 0;
  for (int i = threadIdx.x; i < size; i += kThreads) squares = fmaf(x[i], x[i], squares);
  const float mean = block_sum<kThreads>(squares) / static_cast<float>(size);
  const float factor = 1.0f / sqrtf(mean + eps);
  for (int i = threadIdx.x; i < size; i += kThreads) {
    out[i] = from_float<T>(x[i] * factor * weight[i]);
  }
}

// One element of the rope key, at its place in an entry; of codes it need not be aligned.
template <class T>
__device__ void store_key(const KvLayer& kv, uint8_t* entry, int i, float value) {
  const T element = from_float<T>(value);
  if (kv.format == KvFormat::kFp8) {
    memcpy(entry + fp8_plain_at(kv.value_dim) + i * sizeof element, &element, sizeof element);
  } else {
    reinterpret_cast<T*>(entry)[kv.value_dim + i] = element;
  }
}

// One block: one row.
template <class T>
__global__ void __launch_bounds__(kThreads) latent_kv_kernel(LatentKvArgs args) {
  wait_for_all_before();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const int width = args.q_size + args.kv_rank + args.rope_dim;
  const float* x = args.x + int64_t{row} * width;
  if (args.q_norm != nullptr) {
    T* q = static_cast<T*>(args.q_out) + int64_t{row} * args.q_size;
    norm_part(x, args.q_norm, args.q_size, args.norm_eps, q);
    __syncthreads();  // block_sum has one buffer
  }
  // The cache has one head: the entry of a slot is number `slot`.
  const float* latent = x + args.q_size;
  auto* entry = static_cast<uint8_t*>(args.kv.k) + args.kv_slot[row] * kv_entry_bytes(args.kv);
  if (args.kv.format == KvFormat::kFp8) {
    __shared__ float normed[kMaxHeadDim];
    norm_part(latent, args.kv_norm, args.kv_rank, args.norm_eps, normed);
    __syncthreads();
    store_fp8_latents<kThreads>(normed, args.kv_rank, entry);
  } else {
    norm_part(latent, args.kv_norm, args.kv_rank, args.norm_eps, reinterpret_cast<T*>(entry));
  }
  const float* key = latent + args.kv_rank;
  const int half = args.rope_dim / 2;
  const float position = turning_position(args.positions, row, args.position_shift);
  for (int i = threadIdx.x; i < half; i += kThreads) {
    float low = key[i], high = key[half + i];
    turn(low, high, turn_at(args.inv_freq, i, position, args.scaling));
    store_key<T>(args.kv, entry, i, low);
    store_key<T>(args.kv, entry, half + i, high);
  }
}

}  // namespace

void launch_latent_kv(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LatentKvArgs>(packed);
  const auto kernel =
      args.kv.dtype == DType::kBF16 ? latent_kv_kernel<__nv_bfloat16> : latent_kv_kernel<float>;
  launch_kernel(kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
