#include "kernels/attention/attend_disentangled.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/sample_math.h"

namespace foretoken::cuda {
namespace {

// Threads of a block, and the keys that it scores at once.
constexpr int kThreads = kDisentangledDim;

__device__ const float4* quads(const float* from) { return reinterpret_cast<const float4*>(from); }

__device__ float dot(const float4& a, const float4& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

// One block: one head of a row, which goes through its keys by pieces. A thread scores a key and
// sums one element of the values of every `groups`-th key.
struct DisentangledHead {
  const AttendDisentangledArgs& args;
  const DisentangledSight sight;
  int row;
  int head;

  __device__ const float* part(int of_row, int kind) const {
    const int64_t width = int64_t{args.num_heads} * args.head_dim;
    return args.qkv + (int64_t{of_row} * 3 + kind) * width + int64_t{head} * args.head_dim;
  }

  __device__ float score(const float* q, int key) const {
    const int place = disentangled_place(args, args.positions[row] - (sight.position + key));
    const int64_t at = (int64_t{head} * args.num_places + place) * args.head_dim;
    const float4* keys = quads(part(sight.first + key, 1));
    const float4* place_keys = quads(args.place_keys + at);
    const float4* place_queries = quads(args.place_queries + at);
    float sum = 0;
    for (int c = 0; c < args.head_dim / 4; ++c) {
      const float4 own = quads(q)[c], k = keys[c], to_key = place_keys[c];
      const float4 both{k.x + to_key.x, k.y + to_key.y, k.z + to_key.z, k.w + to_key.w};
      sum += dot(own, both) + dot(k, place_queries[c]);
    }
    return sum * args.scale;
  }
};

// The largest of the piece's scores, for all threads.
__device__ float largest_of(const float* scores, int count) {
  float most = -INFINITY;
  for (int i = 0; i < count; ++i) most = scores[i] > most ? scores[i] : most;
  return most;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    attend_disentangled_kernel(AttendDisentangledArgs args) {
  __shared__ __align__(16) float q[kDisentangledDim];
  __shared__ float scores[kThreads];
  __shared__ float outs[kThreads];
  wait_for_previous();
  const int row = blockIdx.x, num_rows = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  if (row >= num_rows) return;
  const DisentangledHead own{args, disentangled_sight(args, row, num_rows), row,
                             static_cast<int>(blockIdx.y)};
  const int thread = threadIdx.x, dim = args.head_dim, groups = kThreads / dim;
  const int element = thread % dim, group = thread / dim;
  if (thread < dim) q[thread] = own.part(row, 0)[thread];
  float out = 0, sum = 0, largest = -INFINITY;
  for (int first = 0; first < own.sight.count; first += kThreads) {
    const int count = min(kThreads, own.sight.count - first);
    __syncthreads();
    if (thread < count) scores[thread] = own.score(q, first + thread);
    __syncthreads();
    const float most = fmaxf(largest, largest_of(scores, count));
    const float shrink = first > 0 ? sample_math::exp_nonpositive(largest - most) : 0.0f;
    largest = most;
    __syncthreads();
    if (thread < count) scores[thread] = sample_math::exp_nonpositive(scores[thread] - most);
    __syncthreads();
    sum *= shrink;
    out *= shrink;
    for (int i = 0; i < count; ++i) sum += scores[i];
    for (int i = group; i < count; i += groups) {
      out += scores[i] * own.part(own.sight.first + first + i, 2)[element];
    }
  }
  outs[thread] = out;
  __syncthreads();
  if (thread >= dim) return;
  float whole = 0;
  for (int i = 0; i < groups; ++i) whole += outs[i * dim + thread];
  const int64_t at = (int64_t{row} * args.num_heads + own.head) * dim + thread;
  static_cast<T*>(args.out)[at] = from_float<T>(whole / sum);
}

}  // namespace

void launch_attend_disentangled(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<AttendDisentangledArgs>(packed);
  const auto kernel = args.dtype == DType::kBF16 ? attend_disentangled_kernel<__nv_bfloat16>
                                                 : attend_disentangled_kernel<float>;
  launch_kernel(kernel, dim3(args.max_rows, args.num_heads), kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
