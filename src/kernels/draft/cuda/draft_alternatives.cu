#include "kernels/draft/draft_alternatives.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/sample_math.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;

// A logit and its id as one number: the greater logit first, then the lower id; 0: none.
__device__ uint64_t alternative_key(float logit, int id) {
  if (!isfinite(logit)) return 0;
  return static_cast<uint64_t>(sample_math::ordered_key(logit)) << 32 | static_cast<uint32_t>(~id);
}
__device__ int id_of(uint64_t key) { return static_cast<int>(~static_cast<uint32_t>(key)); }

// The greatest of all threads' numbers.
__device__ uint64_t block_max(uint64_t value, uint64_t* scratch) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const uint64_t other = __shfl_xor_sync(0xffffffffu, value, offset);
    value = value > other ? value : other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[0];
  for (int warp = 1; warp < kWarps; ++warp) value = value > scratch[warp] ? value : scratch[warp];
  return value;
}

__device__ float block_sum(float value, float* scratch) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (int warp = 0; warp < kWarps; ++warp) value += scratch[warp];
  return value;
}

// Keeps a thread's greatest numbers in order.
__device__ void insert(uint64_t (&keys)[kDraftAlternatives], uint64_t key) {
#pragma unroll
  for (int i = 0; i < kDraftAlternatives; ++i) {
    const uint64_t lower = key < keys[i] ? key : keys[i];
    keys[i] = key < keys[i] ? keys[i] : key;
    key = lower;
  }
}

// One block: one logits row.
__global__ void __launch_bounds__(kThreads) draft_alternatives_kernel(DraftAlternativesArgs args) {
  __shared__ uint64_t maxima[kWarps];
  __shared__ float sums[kWarps];
  wait_for_previous();
  const int index = args.row_offset + static_cast<int>(blockIdx.x);
  if (index >= args.counts->num_logits_rows) return;
  const float* logits = args.logits + int64_t{blockIdx.x} * args.vocab;
  const int drafted = args.sampled[index];
  DraftAlternative* out = args.out + int64_t{index} * (kDraftAlternatives + 1);
  uint64_t keys[kDraftAlternatives] = {};
  for (int id = threadIdx.x; drafted >= 0 && id < args.vocab; id += kThreads) {
    if (id != drafted) insert(keys, alternative_key(logits[id], id));
  }
  uint64_t best[kDraftAlternatives];
  for (int i = 0; i < kDraftAlternatives; ++i) {
    best[i] = block_max(keys[0], maxima);
    if (best[i] == 0 || keys[0] != best[i]) continue;
    for (int k = 0; k + 1 < kDraftAlternatives; ++k) keys[k] = keys[k + 1];
    keys[kDraftAlternatives - 1] = 0;
  }
  float max = drafted >= 0 ? logits[drafted] : 0.0f;
  if (best[0] != 0) max = fmaxf(max, logits[id_of(best[0])]);
  float sum = 0;
  for (int id = threadIdx.x; drafted >= 0 && id < args.vocab; id += kThreads) {
    const float logit = logits[id];
    if (isfinite(logit)) sum += expf(logit - max);
  }
  sum = block_sum(sum, sums);
  if (threadIdx.x > kDraftAlternatives) return;
  const bool is_draft = threadIdx.x == 0;
  int id = is_draft ? drafted : -1;
  for (int i = 0; i < kDraftAlternatives; ++i) {
    if (static_cast<int>(threadIdx.x) == 1 + i && best[i] != 0) id = id_of(best[i]);
  }
  const bool has_chance = id >= 0 && sum > 0 && isfinite(logits[id]);
  out[threadIdx.x] = {
      id, has_chance ? static_cast<int32_t>(expf(logits[id] - max) / sum * kSureDraft) : 0};
}

}  // namespace

void launch_draft_alternatives(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<DraftAlternativesArgs>(packed);
  launch_kernel(draft_alternatives_kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
