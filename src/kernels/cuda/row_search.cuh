#pragma once
#include <cstdint>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/sample_team.cuh"
#include "kernels/sample_math.h"

// Passes of a team over a row of logits, and the search for a threshold in it.
namespace foretoken::cuda {

inline constexpr int kClusterBlocks = 8;  // of a team on a long row
inline constexpr int kAtOnce = 4;  // blocks of 4 ids that a thread reads before it uses the first

// One row's logits with the stop ids masked while the sequence is too short to stop.
struct MaskedRow {
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
__device__ void for_each_block(const MaskedRow& row, const Visit& visit) {
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
  uint32_t prefix = 0;
  uint32_t known = 0;  // mask of the bits found so far
  for (const int shift : {22, 12, 2, 0}) {
    const uint32_t digits = shift == 0 ? 3u : 1023u;
    team.clear_bins();
    for_each_logit<Size>(row, [&](float logit) {
      const uint32_t key = sample_math::ordered_key(logit);
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

// Launches the teams of an op with one logits row a team: clusters where rows are few and long.
template <class Args>
void launch_teams(void (*cluster_kernel)(Args), void (*block_kernel)(Args), const Args& args,
                  cudaStream_t stream) {
  constexpr int kFewRows = 64;
  constexpr int kLongRow = 16384;
  if (device_traits().clusters && args.max_rows <= kFewRows && args.vocab >= kLongRow) {
    launch_cluster(cluster_kernel, args.max_rows * kClusterBlocks, kClusterBlocks, kTeamThreads, 0,
                   stream, args);
  } else {
    launch_kernel(block_kernel, args.max_rows, kTeamThreads, 0, stream, args);
  }
}

}  // namespace foretoken::cuda
