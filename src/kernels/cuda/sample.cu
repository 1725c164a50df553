#include "kernels/sample.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/sample_team.cuh"
#include "kernels/sample_math.h"

namespace foretoken::cuda {
namespace {

namespace sm = sample_math;

constexpr int kClusterBlocks = 8;
constexpr int kAtOnce = 4;  // blocks of 4 ids that a thread reads before it uses the first

// One row's logits with the stop ids masked while the sequence is too short to stop.
struct Row {
  const float* logits;
  const int32_t* stop_ids;  // shared memory
  int num_masked;
  int vocab;

  __device__ float masked(int id, float logit) const {
    for (int i = 0; i < num_masked; ++i) {
      if (stop_ids[i] == id) return -INFINITY;
    }
    return logit;
  }
};

// Calls visit(first id, 4 logits) for this thread's blocks of 4 ids; beyond the vocabulary -inf.
template <int Size, class Visit>
__device__ void for_each_block(const Row& row, const Visit& visit) {
  const int stride = Size * kTeamThreads;
  const int num_blocks = ceil_div(row.vocab, 4);
  for (int first = Team<Size>::rank() * kTeamThreads + threadIdx.x; first < num_blocks;
       first += stride * kAtOnce) {
    float logits[kAtOnce][4];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int id = (first + i * stride) * 4 + j;
        logits[i][j] = id < row.vocab ? row.logits[id] : -INFINITY;
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int id = (first + i * stride) * 4;
      if (id >= row.vocab) break;
      if (row.num_masked > 0) {
#pragma unroll
        for (int j = 0; j < 4; ++j) logits[i][j] = row.masked(id + j, logits[i][j]);
      }
      visit(id, logits[i]);
    }
  }
}

// The same, one logit after the other: visit(logit).
template <int Size, class Visit>
__device__ void for_each_logit(const Row& row, const Visit& visit) {
  for_each_block<Size>(row, [&](int id, const float(&logits)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (id + j < row.vocab) visit(logits[j]);
    }
  });
}

// A coarse place for a logit: bins of equal width below the highest logit, the highest first. It
// spreads the ids over the bins before the exact search looks at the bits of one bin's ids.
struct CoarseBins {
  float max;
  float bins_per_unit;

  __device__ int of(float logit) const {
    const float place = (max - logit) * bins_per_unit;
    return place < static_cast<float>(kTeamBins - 1) ? kTeamBins - 1 - static_cast<int>(place) : 0;
  }
};

// Key of the highest logit such that the amounts of the ids at or above it reach
// target(all amounts).
template <int Size, class Amount, class Target>
__device__ uint32_t highest_threshold(const Row& row, const CoarseBins& coarse,
                                      const Team<Size>& team, const Amount& amount,
                                      const Target& target) {
  const auto add = [&](int bin, uint64_t value) {
    if (value != 0) atomicAdd(&team.shared.bins[bin], static_cast<unsigned long long>(value));
  };
  team.clear_bins();
  for_each_logit<Size>(row, [&](float logit) { add(coarse.of(logit), amount(logit)); });
  team.find_bin(target);
  const int coarse_bin = static_cast<int>(team.shared.answer_bin);
  uint64_t rest = team.shared.answer_rest;
  uint32_t prefix = 0;
  uint32_t known = 0;  // mask of the bits found so far
  for (const int shift : {22, 12, 2, 0}) {
    const uint32_t digits = shift == 0 ? 3u : 1023u;
    team.clear_bins();
    for_each_logit<Size>(row, [&](float logit) {
      const uint32_t key = sm::ordered_key(logit);
      if ((key & known) != prefix || coarse.of(logit) != coarse_bin) return;
      add(static_cast<int>(key >> shift & digits), amount(logit));
    });
    team.find_bin([=](uint64_t) { return rest; });
    prefix |= static_cast<uint32_t>(team.shared.answer_bin) << shift;
    known |= digits << shift;
    rest = team.shared.answer_rest;
  }
  return prefix;
}

// Lowest ordered key that top_k and top_p keep.
template <int Size>
__device__ uint32_t kept_threshold(const Row& row, const SlotParams& params, float max,
                                   const Team<Size>& team) {
  uint32_t threshold = sm::kKeyOfMinusInf + 1;
  if (params.top_k > 0 && params.top_k < row.vocab) {
    const auto one = [](float) { return uint64_t{1}; };
    const auto count = [&](uint64_t) { return static_cast<uint64_t>(params.top_k); };
    const CoarseBins coarse{max, kTeamBins / 32.0f};
    const uint32_t kth = highest_threshold<Size>(row, coarse, team, one, count);
    threshold = kth > threshold ? kth : threshold;
  }
  if (params.top_p < 1.0f) {
    const auto mass = [&](float logit) {
      return sm::ordered_key(logit) < threshold
                 ? uint64_t{0}
                 : uint64_t{sm::mass_of(sm::weight_of(logit, max, params.temperature))};
    };
    const auto part = [&](uint64_t total) { return sm::top_p_mass(params.top_p, total); };
    // Below 22 temperatures under the highest logit an id has no mass.
    const CoarseBins coarse{max, kTeamBins / (22.0f * params.temperature)};
    const uint32_t kept = highest_threshold<Size>(row, coarse, team, mass, part);
    threshold = kept > threshold ? kept : threshold;
  }
  return threshold;
}

// (score, id) of the best id among this thread's; scores are not negative, so their bits are
// ordered like their values.
template <int Size>
__device__ uint64_t race(const Row& row, const SlotParams& params, float max, uint32_t threshold,
                         int position) {
  uint64_t best = ~uint64_t{0};
  float best_score = INFINITY;
  for_each_block<Size>(row, [&](int id, const float(&logits)[4]) {
    float weights[4];
    bool any = false;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const bool kept = sm::ordered_key(logits[j]) >= threshold;
      weights[j] = kept ? sm::weight_of(logits[j], max, params.temperature) : 0.0f;
      any |= weights[j] > 0.0f;
    }
    if (!any) return;
    const Philox4 noise =
        sm::noise_words(id / 4, position, params.choice, kSampleTarget, params.seed);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      // -log1p(-v) >= v: most ids lose before the logarithm; the margin covers the rounding.
      const float bound = sm::unit_from_word(noise.v[j]) * 0.999f;
      if (weights[j] <= 0.0f || bound > best_score * weights[j]) continue;
      const float score = sm::race_score(noise.v[j], weights[j]);
      const uint64_t key = (uint64_t{sm::bits_of(score)} << 32) | static_cast<uint32_t>(id + j);
      if (key < best) {
        best = key;
        best_score = score;
      }
    }
  });
  return best;
}

// The id that `row` samples; -1 for a row with a NaN or without an id to sample.
template <int Size>
__device__ int32_t sample_row(const Row& row, const SlotParams& params, int position,
                              const Team<Size>& team) {
  uint64_t highest = 0;  // (ordered key, ~id): ties go to the lowest id; all ones: invalid row
  for_each_block<Size>(row, [&](int id, const float(&logits)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (id + j >= row.vocab) break;
      uint64_t key = (uint64_t{sm::ordered_key(logits[j])} << 32) | ~static_cast<uint32_t>(id + j);
      if (sm::is_invalid_logit(logits[j])) key = ~uint64_t{0};
      highest = key > highest ? key : highest;
    }
  });
  highest = team.reduce(highest, [](uint64_t a, uint64_t b) { return a > b ? a : b; });
  const auto id_of_highest = static_cast<int32_t>(~static_cast<uint32_t>(highest));
  if (highest == ~uint64_t{0} || (highest >> 32) <= sm::kKeyOfMinusInf) return -1;
  if (params.temperature <= 0.0f) return id_of_highest;
  const float max = row.logits[id_of_highest];
  const uint32_t threshold = kept_threshold<Size>(row, params, max, team);
  const uint64_t winner = team.reduce(race<Size>(row, params, max, threshold, position),
                                      [](uint64_t a, uint64_t b) { return a < b ? a : b; });
  return static_cast<int32_t>(winner & 0xffffffffu);
}

// A team of Size blocks: one logits row.
template <int Size>
__global__ void __launch_bounds__(kTeamThreads) sample_kernel(SampleArgs args) {
  __shared__ TeamShared shared;
  __shared__ int32_t stop_ids[kMaxStopIds];
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x / Size;
  if (i >= live_rows(args.counts, RowKind::kLogits, args.row_offset, args.max_rows)) return;
  const int token_row = args.logits_rows[args.row_offset + i];
  const SlotParams& params = args.params[args.row_slot[token_row]];
  const int position = args.positions[token_row] + 1;
  if (threadIdx.x < kMaxStopIds) stop_ids[threadIdx.x] = params.stop_ids[threadIdx.x];
  __syncthreads();
  const Row row{args.logits + int64_t{i} * args.vocab, stop_ids,
                position < params.min_len ? params.num_stop_ids : 0, args.vocab};
  const int32_t id = sample_row<Size>(row, params, position, Team<Size>{shared});
  if (threadIdx.x == 0 && Team<Size>::rank() == 0) args.sampled[args.row_offset + i] = id;
}

}  // namespace

void launch_sample(const void* packed, cudaStream_t stream) {
  constexpr int kFewRows = 64;
  constexpr int kLongRow = 16384;
  const auto& args = op_args<SampleArgs>(packed);
  if (device_traits().clusters && args.max_rows <= kFewRows && args.vocab >= kLongRow) {
    launch_cluster(sample_kernel<kClusterBlocks>, args.max_rows * kClusterBlocks, kClusterBlocks,
                   kTeamThreads, 0, stream, args);
  } else {
    launch_kernel(sample_kernel<1>, args.max_rows, kTeamThreads, 0, stream, args);
  }
}

}  // namespace foretoken::cuda
