#include "kernels/latent/index_rows.h"

#include "kernels/attention/cuda/rotation.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

constexpr int kIndexThreads = kMaxIndexDim;  // one for each element of a key

// Sum over the block in a fixed order; every thread gets it and calls it. `sums` holds a float for
// each warp.
__device__ float sum_of_index_key(float value, float* sums) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kIndexThreads / 32; ++i) sum += sums[i];
  return sum;
}

// Element `thread` of a head of `dim` elements, normed by root mean squares; every thread calls it.
__device__ float normed_index_element(const IndexRowsArgs& args, float x, const float* weight,
                                      float* sums) {
  const float mean = sum_of_index_key(x * x, sums) / static_cast<float>(args.head_dim);
  const float factor = 1.0f / sqrtf(mean + args.norm_eps);
  const int thread = threadIdx.x;
  return thread < args.head_dim ? x * factor * weight[thread] : 0.0f;
}

// Element i of a head x whose front turns.
__device__ float index_element(const float* x, int i, int half, const float2* turns) {
  if (i >= 2 * half) return x[i];
  const float2 by = turns[i < half ? i : i - half];
  return i < half ? x[i] * by.x - x[i + half] * by.y : x[i] * by.x + x[i - half] * by.y;
}

// One block: one row.
template <class T>
__global__ void __launch_bounds__(kIndexThreads) index_rows_kernel(IndexRowsArgs args) {
  __shared__ float2 turns[kMaxIndexDim / 2];
  __shared__ float normed[kMaxIndexDim];
  __shared__ float sums[kIndexThreads / 32];
  wait_for_all_before();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const int thread = threadIdx.x;
  const int dim = args.head_dim;
  const int half = args.inv_freq == nullptr ? 0 : args.rope_dim / 2;
  const float position = turning_position(args.positions, row, args.position_shift);
  for (int i = thread; i < half; i += kIndexThreads) {
    turns[i] = turn_at(args.inv_freq, i, position, args.scaling);
  }
  const bool owns = thread < dim;
  const float x = owns ? index_key(args, row)[thread] : 0.0f;
  if (args.norm_bias == nullptr) {
    normed[thread] = normed_index_element(args, x, args.norm_weight, sums);
  } else {
    const float size = static_cast<float>(dim);
    const float mean = sum_of_index_key(x, sums) / size;
    const float centred = owns ? x - mean : 0.0f;
    const float variance = sum_of_index_key(centred * centred, sums) / size;
    if (owns) {
      const float factor = 1.0f / sqrtf(variance + args.norm_eps);
      normed[thread] = centred * factor * args.norm_weight[thread] + args.norm_bias[thread];
    }
  }
  __syncthreads();
  if (owns) {
    T* entry = static_cast<T*>(args.keys) + int64_t{args.kv_slot[row]} * dim;
    entry[thread] = from_float<T>(index_element(normed, thread, half, turns));
  }
  const float* queries = index_queries(args, row);
  T* q_out = static_cast<T*>(args.q_out) + int64_t{row} * args.num_heads * dim;
  if (args.query_norm == nullptr) {
    for (int e = thread; e < args.num_heads * dim; e += kIndexThreads) {
      q_out[e] = from_float<T>(index_element(queries + e / dim * dim, e % dim, half, turns));
    }
    return;
  }
  for (int head = 0; head < args.num_heads; ++head, queries += dim, q_out += dim) {
    const float own = owns ? queries[thread] : 0.0f;
    const float element = normed_index_element(args, own, args.query_norm, sums);
    __syncthreads();
    normed[thread] = element;
    __syncthreads();
    if (owns) q_out[thread] = from_float<T>(index_element(normed, thread, half, turns));
  }
}

}  // namespace

void launch_index_rows(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<IndexRowsArgs>(packed);
  const auto kernel =
      args.dtype == DType::kBF16 ? index_rows_kernel<__nv_bfloat16> : index_rows_kernel<float>;
  launch_kernel(kernel, args.max_rows, kIndexThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
