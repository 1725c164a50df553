#include "kernels/latent/attend_compressed.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/latent/cuda/attend_compressed_mma.cuh"
#include "kernels/latent/cuda/coded_entry.cuh"
#include "kernels/latent/cuda/tail_turn.cuh"
#include "kernels/sample_math.h"

namespace foretoken::cuda {
namespace {

constexpr int kSeenAtOnce = 64;
constexpr int kOutEach = kMaxCompressedDim / kTailThreads;  // elements of a thread

// One block: one head of a row, which goes through what the row sees by pieces.
template <class T>
struct HeadOfRow {
  const AttendCompressedArgs& args;
  const CompressedSight sight;
  int row;
  int head;

  __device__ const uint8_t* entry(int i) const {
    const void* base = i < sight.num_window ? args.kv : args.entries;
    return static_cast<const uint8_t*>(base) +
           seen_entry(args, sight, row, i) * entry_form(args).bytes();
  }
  __device__ float element(const uint8_t* entry, int c) const {
    return entry_element<T>(entry_form(args), entry, c);
  }
  __device__ int64_t place() const {
    return (int64_t{row} * args.num_heads + head) * args.head_dim;
  }

  // Scores of `count` entries from `first` on; each by a warp.
  __device__ void score(const float* q, int first, int count, float* scores) const {
    const int lane = threadIdx.x % 32;
    for (int i = threadIdx.x / 32; i < count; i += kTailThreads / 32) {
      const uint8_t* key = entry(first + i);
      float sum = 0;
      for (int c = lane; c < args.head_dim; c += 32) sum += q[c] * element(key, c);
      for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
      }
      if (lane == 0) scores[i] = sum * args.scale;
    }
  }
};

template <class T>
__device__ void leave_state(const HeadOfRow<T>& of, const float (&out)[kOutEach], float largest,
                            float sum) {
  const int dim = of.args.head_dim;
  float* state = compressed_state(of.args, of.row, of.head);
  for (int j = 0; j < kOutEach; ++j) {
    const int c = threadIdx.x + j * kTailThreads;
    if (c < dim) state[c] = out[j];
  }
  if (threadIdx.x > 0) return;
  state[dim] = largest;
  state[dim + 1] = sum;
}

template <class T>
__global__ void __launch_bounds__(kTailThreads)
    attend_compressed_kernel(AttendCompressedArgs args) {
  __shared__ float q[kMaxCompressedDim];
  __shared__ float scores[kSeenAtOnce];
  wait_for_all_before();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  const HeadOfRow<T> own{args, compressed_sight(args, row, args.positions[row]), row,
                         static_cast<int>(blockIdx.y)};
  for (int c = threadIdx.x; c < args.head_dim; c += kTailThreads) {
    q[c] = to_float(static_cast<const T*>(args.q)[own.place() + c]);
  }
  float out[kOutEach] = {};
  float largest = args.sinks != nullptr ? args.sinks[own.head] : -INFINITY;
  float sum = args.sinks != nullptr ? 1 : 0;
  const int seen = own.sight.num_window + own.sight.num_entries;
  for (int first = 0; first < seen; first += kSeenAtOnce) {
    const int count = min(kSeenAtOnce, seen - first);
    __syncthreads();
    own.score(q, first, count, scores);
    __syncthreads();
    float most = largest;
    for (int i = 0; i < count; ++i) most = scores[i] > most ? scores[i] : most;
    const float shrink = sample_math::exp_nonpositive(largest - most);
    largest = most;
    sum *= shrink;
    for (int j = 0; j < kOutEach; ++j) out[j] *= shrink;
    for (int i = 0; i < count; ++i) {
      const float weight = sample_math::exp_nonpositive(scores[i] - most);
      const uint8_t* value = own.entry(first + i);
      sum += weight;
      for (int j = 0; j < kOutEach; ++j) {
        const int c = threadIdx.x + j * kTailThreads;
        if (c < args.head_dim) out[j] += weight * own.element(value, c);
      }
    }
  }
  if (args.states != nullptr) return leave_state(own, out, largest, sum);
  __syncthreads();
  for (int j = 0; j < kOutEach; ++j) {
    const int c = threadIdx.x + j * kTailThreads;
    if (c < args.head_dim) q[c] = out[j] / sum;
  }
  __syncthreads();
  const TailPlace tail{args.head_dim - args.rope_dim,
                       static_cast<float>(args.positions[row] + args.position_shift), -1};
  const auto attended = [&](int i) { return q[i]; };
  T* to = static_cast<T*>(args.out) + own.place();
  for (int c = threadIdx.x; c < args.head_dim; c += kTailThreads) {
    to[c] = from_float<T>(tail.element(c, args.inv_freq, args.scaling, attended));
  }
}

}  // namespace

void launch_attend_compressed(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<AttendCompressedArgs>(packed);
  if (args.states == nullptr && launch_attend_compressed_mma(args, stream)) return;
  const auto kernel = args.dtype == DType::kBF16 ? attend_compressed_kernel<__nv_bfloat16>
                                                 : attend_compressed_kernel<float>;
  launch_kernel(kernel, dim3(args.max_rows, args.num_heads), kTailThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
