#include "kernels/sample.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/sample_math.h"

namespace foretoken::cuda {
namespace {

namespace sm = sample_math;

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr int kBins = 256;
constexpr uint64_t kNoId = ~uint64_t{0};

// One row's logits with the stop ids masked while the sequence is too short to stop.
struct Row {
  const float* logits;
  const int32_t* stop_ids;  // shared memory
  int num_masked;
  int vocab;

  __device__ float at(int id) const {
    for (int i = 0; i < num_masked; ++i) {
      if (stop_ids[i] == id) return -INFINITY;
    }
    return logits[id];
  }
};

struct Shared {
  uint64_t bins[kBins];
  uint64_t keys[kWarps];
  uint64_t answer;
  uint64_t remaining;
  int32_t stop_ids[kMaxStopIds];
};

// Smallest (Min) or largest key of the block; every thread gets it.
template <bool Min>
__device__ uint64_t reduce_keys(uint64_t key, Shared& shared) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const uint64_t other = __shfl_xor_sync(0xffffffffu, key, offset);
    key = (other < key) == Min ? other : key;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared.keys[threadIdx.x / 32] = key;
  __syncthreads();
  for (int i = 0; i < kWarps; ++i) {
    const uint64_t other = shared.keys[i];
    key = (other < key) == Min ? other : key;
  }
  return key;
}

// Highest threshold key such that the sum of mass(id) over the ids with ordered key >= threshold
// reaches `target`; the sum over all ids must reach it. Digit by digit from the top.
template <class Mass>
__device__ uint32_t highest_threshold(const Row& row, uint64_t target, Shared& shared,
                                      const Mass& mass) {
  uint32_t prefix = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < kBins; i += kThreads) shared.bins[i] = 0;
    __syncthreads();
    const uint32_t fixed = shift == 24 ? 0u : ~0u << (shift + 8);
    for (int id = threadIdx.x; id < row.vocab; id += kThreads) {
      const float logit = row.at(id);
      const uint32_t key = sm::ordered_key(logit);
      if ((key & fixed) != prefix) continue;
      const uint64_t amount = mass(logit, key);
      if (amount == 0) continue;
      atomicAdd(reinterpret_cast<unsigned long long*>(&shared.bins[(key >> shift) & 255u]),
                static_cast<unsigned long long>(amount));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = kBins - 1;
      while (digit > 0 && shared.bins[digit] < target) target -= shared.bins[digit--];
      shared.answer = static_cast<uint64_t>(digit);
      shared.remaining = target;
    }
    __syncthreads();
    prefix |= static_cast<uint32_t>(shared.answer) << shift;
    target = shared.remaining;
    __syncthreads();
  }
  return prefix;
}

// Sum of mass(id) over the ids with ordered key >= threshold; every thread gets it.
template <class Mass>
__device__ uint64_t total_mass(const Row& row, uint32_t threshold, Shared& shared,
                               const Mass& mass) {
  uint64_t sum = 0;
  for (int id = threadIdx.x; id < row.vocab; id += kThreads) {
    const float logit = row.at(id);
    const uint32_t key = sm::ordered_key(logit);
    if (key >= threshold) sum += mass(logit, key);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared.keys[threadIdx.x / 32] = sum;
  __syncthreads();
  uint64_t total = 0;
  for (int i = 0; i < kWarps; ++i) total += shared.keys[i];
  return total;
}

// Lowest ordered key that top_k and top_p keep.
__device__ uint32_t kept_threshold(const Row& row, const SlotParams& params, float max,
                                   Shared& shared) {
  uint32_t threshold = sm::kKeyOfMinusInf + 1;
  if (params.top_k > 0 && params.top_k < row.vocab) {
    const auto one = [](float, uint32_t) { return uint64_t{1}; };
    const uint32_t kth =
        highest_threshold(row, static_cast<uint64_t>(params.top_k), shared, one);
    threshold = kth > threshold ? kth : threshold;
  }
  if (params.top_p < 1.0f) {
    const float temperature = params.temperature;
    const auto mass = [=](float logit, uint32_t key) {
      return key < threshold ? uint64_t{0}
                             : uint64_t{sm::mass_of(sm::weight_of(logit, max, temperature))};
    };
    const uint64_t target =
        sm::top_p_mass(params.top_p, total_mass(row, threshold, shared, mass));
    const uint32_t kept = highest_threshold(row, target, shared, mass);
    threshold = kept > threshold ? kept : threshold;
  }
  return threshold;
}

// (score, id) of the best id among this thread's; scores are not negative, so their bits are
// ordered like their values.
__device__ uint64_t race(const Row& row, const SlotParams& params, float max, uint32_t threshold,
                         int position) {
  uint64_t best = kNoId;
  float best_score = INFINITY;
  for (int block = threadIdx.x; block * 4 < row.vocab; block += kThreads) {
    float weights[4];
    bool any = false;
    for (int j = 0; j < 4; ++j) {
      const int id = block * 4 + j;
      const float logit = id < row.vocab ? row.at(id) : -INFINITY;
      const bool kept = sm::ordered_key(logit) >= threshold;
      weights[j] = kept ? sm::weight_of(logit, max, params.temperature) : 0.0f;
      any |= weights[j] > 0.0f;
    }
    if (!any) continue;
    const Philox4 noise = sm::noise_words(block, position, params.choice, kSampleTarget,
                                          params.seed);
    for (int j = 0; j < 4; ++j) {
      // -log1p(-v) >= v: most ids lose before the logarithm; the margin covers the rounding.
      const float bound = sm::unit_from_word(noise.v[j]) * 0.999f;
      if (weights[j] <= 0.0f || bound > best_score * weights[j]) continue;
      const float score = sm::race_score(noise.v[j], weights[j]);
      const uint64_t key = (uint64_t{sm::bits_of(score)} << 32) |
                           static_cast<uint32_t>(block * 4 + j);
      if (key < best) {
        best = key;
        best_score = score;
      }
    }
  }
  return best;
}

// One block: one logits row.
__global__ void __launch_bounds__(kThreads) sample_kernel(SampleArgs args) {
  __shared__ Shared shared;
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x;
  if (i >= live_rows(args.counts, RowKind::kLogits, args.row_offset, args.max_rows)) return;
  const int token_row = args.logits_rows[args.row_offset + i];
  const SlotParams& params = args.params[args.row_slot[token_row]];
  const int next_position = args.positions[token_row] + 1;
  const bool masked = next_position < params.min_len;
  if (threadIdx.x < kMaxStopIds) shared.stop_ids[threadIdx.x] = params.stop_ids[threadIdx.x];
  __syncthreads();
  const Row row{args.logits + int64_t{i} * args.vocab, shared.stop_ids,
                masked ? params.num_stop_ids : 0, args.vocab};

  uint64_t highest = 0;  // (ordered key, ~id): ties go to the lowest id
  bool invalid = false;
  for (int id = threadIdx.x; id < args.vocab; id += kThreads) {
    const float logit = row.at(id);
    invalid |= sm::is_invalid_logit(logit);
    const uint64_t key = (uint64_t{sm::ordered_key(logit)} << 32) | ~static_cast<uint32_t>(id);
    highest = key > highest ? key : highest;
  }
  invalid = __syncthreads_or(invalid);
  highest = reduce_keys<false>(highest, shared);
  const uint32_t id_of_highest = ~static_cast<uint32_t>(highest);
  int32_t sampled = static_cast<int32_t>(id_of_highest);
  if (invalid || (highest >> 32) <= sm::kKeyOfMinusInf) {
    sampled = -1;
  } else if (params.temperature > 0.0f) {
    const float max = row.logits[id_of_highest];
    const uint32_t threshold = kept_threshold(row, params, max, shared);
    const uint64_t winner =
        reduce_keys<true>(race(row, params, max, threshold, next_position), shared);
    sampled = static_cast<int32_t>(winner & 0xffffffffu);
  }
  if (threadIdx.x == 0) args.sampled[args.row_offset + i] = sampled;
}

}  // namespace

void launch_sample(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<SampleArgs>(packed);
  launch_kernel(sample_kernel, args.max_rows, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
