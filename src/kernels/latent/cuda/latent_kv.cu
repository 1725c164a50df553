#include "kernels/latent/latent_kv.h"

#include <algorithm>

#include "kernels/attention/cuda/kv_codes.cuh"
#include "kernels/attention/cuda/rotation.cuh"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/rows/cuda/norm_row.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kEntryThreads = 256;

__device__ const float* row_of(const LatentKvArgs& args, int row) {
  return args.x + int64_t{row} * (args.q_size + args.kv_rank + args.rope_dim);
}

// Entries of other ranks' positions are not made.
__device__ bool has_entry(const LatentKvArgs& args, int row) {
  return args.kv.context_size == 1 || holds_slot(args.kv, args.kv_slot[row]);
}

__device__ uint8_t* entry_of(const LatentKvArgs& args, int row) {
  const KvLayer& kv = args.kv;
  const int32_t slot = args.kv_slot[row];
  // The cache has one head: entries lie as slots count them.
  const int64_t entry = kv.context_size == 1 ? slot : entry_of_slot(kv, slot);
  return static_cast<uint8_t*>(kv.k) + entry * kv_entry_bytes(kv);
}

// out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i], by the whole block.
template <class T>
__device__ void norm_part(const float* x, const float* weight, int size, float eps, T* out) {
  float squares = 0;
  for (int i = threadIdx.x; i < size; i += kEntryThreads) squares = fmaf(x[i], x[i], squares);
  const float factor = norm_scale(block_sum<kEntryThreads>(squares), size, eps);
  for (int i = threadIdx.x; i < size; i += kEntryThreads) {
    out[i] = from_float<T>(x[i] * factor * weight[i]);
  }
}

// One element of the rope key, at its place in an entry; of codes it need not be aligned.
template <class T>
__device__ void store_key(const KvLayer& kv, uint8_t* entry, int i, float value) {
  const T element = from_float<T>(value);
  if (kv.format != KvFormat::kPlain) {
    memcpy(entry + latent_plain_at(kv.value_dim) + i * sizeof element, &element, sizeof element);
  } else {
    reinterpret_cast<T*>(entry)[kv.value_dim + i] = element;
  }
}

template <class T>
__device__ void store_turned_key(const LatentKvArgs& args, int row, uint8_t* entry) {
  const float* key = row_of(args, row) + args.q_size + args.kv_rank;
  const int half = args.rope_dim / 2;
  const float position = turning_position(args.positions, row, args.position_shift);
  for (int i = threadIdx.x; i < half; i += kEntryThreads) {
    float low = key[i], high = key[half + i];
    turn(low, high, turn_at(args.inv_freq, i, position, args.scaling));
    store_key<T>(args.kv, entry, i, low);
    store_key<T>(args.kv, entry, half + i, high);
  }
}

template <class T>
__device__ void make_entry(const LatentKvArgs& args, int row) {
  const float* latent = row_of(args, row) + args.q_size;
  uint8_t* entry = entry_of(args, row);
  store_turned_key<T>(args, row, entry);
  if (args.kv.format != KvFormat::kPlain) {
    __shared__ float values[kMaxHeadDim];
    norm_part(latent, args.kv_norm, args.kv_rank, args.norm_eps, values);
    __syncthreads();
    store_coded_latents<kEntryThreads>(args.kv.format, values, args.kv_rank, entry);
  } else {
    norm_part(latent, args.kv_norm, args.kv_rank, args.norm_eps, reinterpret_cast<T*>(entry));
  }
}

// Blocks (row, part): part 0 makes the entry, part 1 norms the queries.
template <class T>
__global__ void __launch_bounds__(kEntryThreads) latent_kv_kernel(LatentKvArgs args) {
  wait_for_previous();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  if (blockIdx.y == 0) {
    if (has_entry(args, row)) make_entry<T>(args, row);
  } else {
    T* q = static_cast<T*>(args.q_out) + int64_t{row} * args.q_size;
    norm_part(row_of(args, row), args.q_norm, args.q_size, args.norm_eps, q);
  }
}

// The same in vectors, which are read once and before the live count is known: rows up to max_rows
// are readable. Norms' weights are constant and come while the op before still runs.
template <class T, int Vectors>
__global__ void __launch_bounds__(kEntryThreads) latent_kv_vector_kernel(LatentKvArgs args) {
  using Row = NormRow<kEntryThreads, Vectors>;
  const bool of_queries = blockIdx.y == 1;
  const int size = of_queries ? args.q_size : args.kv_rank;
  const float* norm = of_queries ? args.q_norm : args.kv_norm;
  Row weight = load_norm_weight<kEntryThreads, Vectors>(norm, size);
  wait_for_previous();
  const int row = blockIdx.x;
  const int live = args.counts->num_rows;
  const float* x = row_of(args, row) + (of_queries ? 0 : args.q_size);
  Row values{size, {}};
  values.for_each([&](int at, float4& v) { v = load4(x + at); });
  if (row >= live) return;
  if (of_queries) {
    T* q = static_cast<T*>(args.q_out) + int64_t{row} * args.q_size;
    store_normed(values, weight, values.scale(args.norm_eps), q);
    return;
  }
  if (!has_entry(args, row)) return;
  uint8_t* entry = entry_of(args, row);
  store_turned_key<T>(args, row, entry);
  const float scale = values.scale(args.norm_eps);
  if (args.kv.format != KvFormat::kPlain) {
    __shared__ __align__(16) float normed_latents[kMaxHeadDim];
    store_normed(values, weight, scale, normed_latents);
    __syncthreads();
    store_coded_latents<kEntryThreads>(args.kv.format, normed_latents, args.kv_rank, entry);
  } else {
    store_normed(values, weight, scale, reinterpret_cast<T*>(entry));
  }
}

template <class T>
void launch_parts(const LatentKvArgs& args, cudaStream_t stream) {
  const dim3 grid(args.max_rows, args.q_norm != nullptr ? 2 : 1);
  const int longest = args.q_norm != nullptr ? std::max(args.q_size, args.kv_rank) : args.kv_rank;
  const bool aligned = args.q_size % 4 == 0 && args.kv_rank % 4 == 0 && args.rope_dim % 4 == 0;
  const auto launch = [&](auto kernel) {
    launch_kernel(kernel, grid, kEntryThreads, 0, stream, args);
  };
  if (!aligned || longest > 16 * kEntryThreads) {
    return launch(latent_kv_kernel<T>);
  }
  longest <= 8 * kEntryThreads ? launch(latent_kv_vector_kernel<T, 2>)
                               : launch(latent_kv_vector_kernel<T, 4>);
}

}  // namespace

void launch_latent_kv(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<LatentKvArgs>(packed);
  args.kv.dtype == DType::kBF16 ? launch_parts<__nv_bfloat16>(args, stream)
                                : launch_parts<float>(args, stream);
}

}  // namespace foretoken::cuda
