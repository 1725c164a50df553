#pragma once
#include <cstdint>

#include "kernels/cuda/common.cuh"
#include "kernels/sample_math.h"
#include "kernels/sampling/cuda/sample_team.cuh"

// Passes of a team over a row of logits, and the search for a threshold in it.
namespace foretoken::cuda {

inline constexpr int kAtOnce = 4;  // blocks of 4 ids that a thread reads before it uses the first

// One row's logits with the stop ids masked while the sequence is too short to stop.
struct MaskedRow {
  const float* logits;
  const int32_t* stop_ids;  // shared memory
  int num_masked;
  int vocab;

  // The logits of ids id .. id + 3; beyond the vocabulary -inf. id is a multiple of 4.
  __device__ float4 four(int id) const {
    if (vocab % 4 == 0 && id < vocab) return *reinterpret_cast<const float4*>(logits + id);
    return {at(id), at(id + 1), at(id + 2), at(id + 3)};
  }

  __device__ float at(int id) const { return id < vocab ? logits[id] : -INFINITY; }

  __device__ float masked(int id, float logit) const {
    for (int i = 0; i < num_masked; ++i) {
      if (stop_ids[i] == id) return -INFINITY;
    }
    return logit;
  }
};

// Calls visit(first id, 4 logits) for this thread's blocks of 4 ids; beyond the vocabulary -inf.
template <int Size, class Visit>
__device__ void for_each_block(const MaskedRow& row, const Visit& visit) {
  const int stride = Size * kTeamThreads;
  const int num_blocks = ceil_div(row.vocab, 4);
  for (int first = Team<Size>::rank() * kTeamThreads + threadIdx.x; first < num_blocks;
       first += stride * kAtOnce) {
    float logits[kAtOnce][4];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const float4 four = row.four((first + i * stride) * 4);
      logits[i][0] = four.x;
      logits[i][1] = four.y;
      logits[i][2] = four.z;
      logits[i][3] = four.w;
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
__device__ void for_each_logit(const MaskedRow& row, const Visit& visit) {
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

// Copies this block's logits that `wanted` names to its candidates; false, for the whole team,
// where a block has more than fit.
template <int Size, class Wanted>
__device__ bool keep_candidates(const MaskedRow& row, const Team<Size>& team,
                                const Wanted& wanted) {
  TeamShared& shared = team.shared;
  if (threadIdx.x == 0) shared.num_candidates = 0;
  __syncthreads();
  for_each_logit<Size>(row, [&](float logit) {
    if (!wanted(logit)) return;
    const int place = atomicAdd(&shared.num_candidates, 1);
    if (place < kMaxCandidates) shared.candidates[place] = logit;
  });
  __syncthreads();
  const auto most = [](uint64_t a, uint64_t b) { return a > b ? a : b; };
  return team.reduce(static_cast<uint64_t>(shared.num_candidates), most) <= kMaxCandidates;
}

// Key of the highest logit such that the amounts of the ids at or above it reach
// target(all amounts).
template <int Size, class Amount, class Target>
__device__ uint32_t highest_threshold(const MaskedRow& row, const CoarseBins& coarse,
                                      const Team<Size>& team, const Amount& amount,
                                      const Target& target) {
  const auto add = [&](int bin, uint64_t value) {
    if (value != 0) atomicAdd(&team.shared.bins[bin], static_cast<unsigned long long>(value));
  };
  team.clear_bins();
  // Most ids can lie in the last bin; atomics to one place wait for each other.
  uint64_t lowest = 0;
  for_each_logit<Size>(row, [&](float logit) {
    const int bin = coarse.of(logit);
    const uint64_t value = amount(logit);
    if (bin == 0) {
      lowest += value;
    } else {
      add(bin, value);
    }
  });
  for (int offset = 16; offset > 0; offset /= 2) {
    lowest += __shfl_xor_sync(0xffffffffu, lowest, offset);
  }
  if (threadIdx.x % 32 == 0) add(0, lowest);
  team.find_bin(target);
  const int coarse_bin = static_cast<int>(team.shared.answer_bin);
  uint64_t rest = team.shared.answer_rest;
  const bool kept = keep_candidates<Size>(
      row, team, [&](float logit) { return coarse.of(logit) == coarse_bin && amount(logit) != 0; });
  uint32_t prefix = 0;
  uint32_t known = 0;  // mask of the bits found so far
  for (const int shift : {22, 12, 2, 0}) {
    const uint32_t digits = shift == 0 ? 3u : 1023u;
    team.clear_bins();
    const auto add_digit = [&](float logit) {
      const uint32_t key = sample_math::ordered_key(logit);
      if ((key & known) != prefix || coarse.of(logit) != coarse_bin) return;
      add(static_cast<int>(key >> shift & digits), amount(logit));
    };
    if (kept) {
      for (int i = threadIdx.x; i < team.shared.num_candidates; i += kTeamThreads) {
        add_digit(team.shared.candidates[i]);
      }
    } else {
      for_each_logit<Size>(row, add_digit);
    }
    team.find_bin([=](uint64_t) { return rest; });
    prefix |= static_cast<uint32_t>(team.shared.answer_bin) << shift;
    known |= digits << shift;
    rest = team.shared.answer_rest;
  }
  return prefix;
}

// Lowest ordered key that top_k and top_p keep.
template <int Size>
__device__ uint32_t kept_threshold(const MaskedRow& row, const SlotParams& params, float max,
                                   const Team<Size>& team) {
  uint32_t threshold = sample_math::kKeyOfMinusInf + 1;
  if (params.top_k > 0 && params.top_k < row.vocab) {
    const auto one = [](float) { return uint64_t{1}; };
    const auto count = [&](uint64_t) { return static_cast<uint64_t>(params.top_k); };
    const CoarseBins coarse{max, kTeamBins / 32.0f};
    const uint32_t kth = highest_threshold<Size>(row, coarse, team, one, count);
    threshold = kth > threshold ? kth : threshold;
  }
  if (params.top_p < 1.0f) {
    const auto mass = [&](float logit) {
      if (sample_math::ordered_key(logit) < threshold) return uint64_t{0};
      const float weight = sample_math::weight_of(logit, max, params.temperature);
      return weight < params.min_p ? uint64_t{0} : uint64_t{sample_math::mass_of(weight)};
    };
    const auto part = [&](uint64_t total) { return sample_math::top_p_mass(params.top_p, total); };
    // Below 22 temperatures under the highest logit an id has no mass.
    const CoarseBins coarse{max, kTeamBins / (22.0f * params.temperature)};
    const uint32_t kept = highest_threshold<Size>(row, coarse, team, mass, part);
    threshold = kept > threshold ? kept : threshold;
  }
  return threshold;
}

// The kernels of an op for teams of 8, 4, 2 and 1 blocks.
template <class Args>
struct TeamKernels {
  void (*of_8)(Args);
  void (*of_4)(Args);
  void (*of_2)(Args);
  void (*of_1)(Args);
};

// Launches the teams of an op with one logits row a team: as many blocks a row as the device runs
// at once, a block having a multiprocessor for itself.
template <class Args>
void launch_teams(const TeamKernels<Args>& kernels, const Args& args, cudaStream_t stream) {
  constexpr int kLongRow = 16384;
  const bool clusters = device_traits().clusters && args.vocab >= kLongRow;
  const auto launch = [&](auto kernel, int size) {
    launch_cluster(kernel, args.max_rows * size, size, kTeamThreads, 0, stream, args);
  };
  if (clusters && args.max_rows <= 8) return launch(kernels.of_8, 8);
  if (clusters && args.max_rows <= 24) return launch(kernels.of_4, 4);
  if (clusters && args.max_rows <= 64) return launch(kernels.of_2, 2);
  launch(kernels.of_1, 1);
}

}  // namespace foretoken::cuda
