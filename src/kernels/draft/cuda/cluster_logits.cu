#include "kernels/draft/cluster_logits.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/gemm/head_argmax.h"
#include "kernels/sample_math.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr int kParts = 8;  // blocks of a row

__global__ void __launch_bounds__(kThreads) clear_logits_kernel(ClusterLogitsArgs args) {
  wait_for_previous();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kLogits, args.row_offset, args.max_rows)) return;
  float* out = args.out + int64_t{row} * args.vocab;
  for (int id = blockIdx.y * kThreads + threadIdx.x; id < args.vocab; id += kParts * kThreads) {
    out[id] = -INFINITY;
  }
}

// The place of a cluster among all by score.
__device__ int rank_of(const uint64_t* keys, int clusters, uint64_t own) {
  int rank = 0;
  for (int c = 0; c < clusters; ++c) rank += keys[c] > own ? 1 : 0;
  return rank;
}

template <class T>
__device__ float warp_dot(const T* a, const T* b, int n) {
  float sum = 0;
  for (int i = threadIdx.x % 32; i < n; i += 32) sum = fmaf(to_float(a[i]), to_float(b[i]), sum);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return sum;
}

// Each of a row's blocks ranks all clusters and takes its share of the chosen ones' ids, a warp an
// id. `shared` holds a key of each cluster, then the chosen clusters.
template <class T>
__global__ void __launch_bounds__(kThreads) cluster_logits_kernel(ClusterLogitsArgs args) {
  extern __shared__ uint64_t keys[];
  auto* chosen = reinterpret_cast<int*>(keys + args.clusters);
  wait_for_previous();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kLogits, args.row_offset, args.max_rows)) return;
  const float* scores = args.scores + int64_t{row} * args.clusters;
  for (int c = threadIdx.x; c < args.clusters; c += kThreads) {
    keys[c] = argmax_key(sample_math::ordered_key(scores[c]), c);
  }
  __syncthreads();
  for (int c = threadIdx.x; c < args.clusters; c += kThreads) {
    const int rank = rank_of(keys, args.clusters, keys[c]);
    if (rank < args.top) chosen[rank] = c;
  }
  __syncthreads();
  const T* x = static_cast<const T*>(args.x) + int64_t{row} * args.k;
  float* out = args.out + int64_t{row} * args.vocab;
  const int num_ids = args.top * args.each;
  const int warp = blockIdx.y * kWarps + threadIdx.x / 32;
  for (int i = warp; i < num_ids; i += kParts * kWarps) {
    const int id = args.ids[int64_t{chosen[i / args.each]} * args.each + i % args.each];
    if (id < 0 || id >= args.vocab) continue;
    const float logit =
        warp_dot(x, static_cast<const T*>(args.table) + int64_t{id} * args.k, args.k);
    if (threadIdx.x % 32 == 0) out[id] = logit;
  }
}

template <class T>
void launch_as(const ClusterLogitsArgs& args, cudaStream_t stream) {
  const dim3 grid(args.max_rows, kParts);
  const size_t bytes = size_t(args.clusters) * sizeof(uint64_t) + size_t(args.top) * sizeof(int);
  auto* kernel = cluster_logits_kernel<T>;
  if (bytes > 48 * 1024) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(bytes));
  }
  launch_kernel(clear_logits_kernel, grid, kThreads, 0, stream, args);
  launch_kernel(kernel, grid, kThreads, bytes, stream, args);
}

}  // namespace

void launch_cluster_logits(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ClusterLogitsArgs>(packed);
  if (args.dtype == DType::kF32) {
    launch_as<float>(args, stream);
  } else {
    launch_as<__nv_bfloat16>(args, stream);
  }
}

}  // namespace foretoken::cuda
