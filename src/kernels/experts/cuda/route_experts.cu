#include "kernels/experts/route_experts.h"

#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/experts/route_math.h"

namespace foretoken::cuda {
namespace {

constexpr int kWarps = 4;  // a row each
constexpr int kListThreads = 256;
constexpr uint32_t kAllLanes = 0xffffffffu;

// Orders like (value, lower index); 0 is below all of them. A NaN is below every number.
__device__ uint64_t key_of(float value, int index) {
  const uint32_t key = isnan(value) ? 0 : sample_math::ordered_key(value);
  return (uint64_t{key} << 32) | ~static_cast<uint32_t>(index);
}
__device__ int index_of(uint64_t key) { return static_cast<int>(~static_cast<uint32_t>(key)); }

__device__ uint64_t warp_best(uint64_t key) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const uint64_t other = __shfl_xor_sync(kAllLanes, key, offset);
    key = other > key ? other : key;
  }
  return key;
}

// The chains of route_math.h, of which each lane has one.
__device__ float chained_sum(float chain) {
  for (int half = route_math::kChains / 2; half > 0; half /= 2) {
    chain = route_math::add(chain, __shfl_down_sync(kAllLanes, chain, half));
  }
  return __shfl_sync(kAllLanes, chain, 0);
}

// One row of a warp: lane i has experts i, i + 32, ... Bit j of `open`: its j-th may be chosen.
struct WarpRow {
  const RouteExpertsArgs& args;
  const float* logits;
  float* scores;  // [num_experts] in shared memory, as all of these
  float* ranks;
  float* groups;  // [num_groups]
  uint32_t open = 0;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  template <class Use>
  __device__ void for_own(int count, const Use& use) const {
    for (int j = 0; j * 32 + lane() < count; ++j) use(j * 32 + lane(), j);
  }

  __device__ uint64_t best_open(const float* values) const {
    uint64_t best = 0;
    for_own(args.num_experts, [&](int e, int j) {
      if ((open >> j & 1) == 0) return;
      const uint64_t key = key_of(values[e], e);
      best = key > best ? key : best;
    });
    return warp_best(best);
  }

  __device__ void softmax() const {
    uint64_t best = 0;
    for_own(args.num_experts, [&](int e, int) {
      const uint64_t key = key_of(logits[e], e);
      best = key > best ? key : best;
    });
    const float largest = logits[index_of(warp_best(best))];
    float chain = 0;
    for_own(args.num_experts, [&](int e, int) {
      scores[e] = route_math::exp_nonpositive(route_math::sub(logits[e], largest));
      chain = route_math::add(chain, scores[e]);
    });
    const float sum = chained_sum(chain);
    for_own(args.num_experts, [&](int e, int) { scores[e] = route_math::div(scores[e], sum); });
  }

  __device__ void score() const {
    if (args.score == ExpertScore::kSoftmax) {
      softmax();
    } else {
      const bool bends = args.score == ExpertScore::kSigmoid;
      for_own(args.num_experts, [&](int e, int) {
        scores[e] = bends ? activation_math::sigmoid(logits[e]) : logits[e];
      });
    }
    for_own(args.num_experts,
            [&](int e, int) { ranks[e] = route_math::rank_of(args, e, logits[e], scores[e]); });
    __syncwarp();
  }

  __device__ void rank_groups() const {
    const int size = args.num_experts / args.num_groups;
    for (int g = 0; g < args.num_groups; ++g) {
      const float* of_group = ranks + g * size;
      const auto best_but = [&](int taken) {
        uint64_t best = 0;
        for_own(size, [&](int i, int) {
          if (i == taken) return;
          const uint64_t key = key_of(of_group[i], i);
          best = key > best ? key : best;
        });
        return index_of(warp_best(best));
      };
      const int best = best_but(-1);
      float rank = of_group[best];
      if (args.groups == ExpertGroups::kBestTwo && size > 1) {
        rank = route_math::group_rank(args, rank, of_group[best_but(best)]);
      }
      if (lane() == 0) groups[g] = rank;
    }
    __syncwarp();
  }

  // Opens the experts that may be chosen; what is chosen among the groups is marked in them.
  __device__ void open_groups() {
    if (args.num_groups == 1) {
      open = kAllLanes;
      return;
    }
    rank_groups();
    uint32_t chosen = 0;
    for (int i = 0; i < args.top_groups; ++i) {
      uint64_t best = 0;
      for_own(args.num_groups, [&](int g, int j) {
        if ((chosen >> j & 1) != 0) return;
        const uint64_t key = key_of(groups[g], g);
        best = key > best ? key : best;
      });
      const int group = index_of(warp_best(best));
      if (group % 32 == lane()) chosen |= 1u << group / 32;
    }
    for_own(args.num_groups, [&](int g, int j) { groups[g] = chosen >> j & 1 ? 1.0f : 0.0f; });
    __syncwarp();
    const int size = args.num_experts / args.num_groups;
    for_own(args.num_experts, [&](int e, int j) {
      if (groups[e / size] != 0.0f) open |= 1u << j;
    });
  }

  // As on the CPU: what `best`, just chosen, weighs among those near it.
  __device__ float mixed_weight(int best) const {
    float chain = 0;
    for_own(args.num_experts, [&](int e, int j) {
      const bool counts = ((open >> j & 1) != 0 || e == best) &&
                          !route_math::is_far(logits[e], logits[best], args.jitter);
      const float near =
          counts ? route_math::exp_nonpositive(route_math::sub(logits[e], logits[best])) : 0.0f;
      chain = route_math::add(chain, near);
    });
    return route_math::div(route_math::exp_nonpositive(0.0f), chained_sum(chain));
  }

  __device__ void choose(int32_t* ids, float* weights) {
    for (int slot = 0; slot < args.lists.top_k; ++slot) {
      const int best = index_of(best_open(ranks));
      if (best % 32 == lane()) open &= ~(1u << best / 32);
      const float weight =
          args.score == ExpertScore::kSparseMixer ? mixed_weight(best) : scores[best];
      if (lane() == 0) {
        ids[slot] = best;
        weights[slot] = weight;
      }
    }
    if (lane() == 0) route_math::finish_weights(args, ids, weights);
  }
};

__global__ void __launch_bounds__(kWarps * 32) route_kernel(RouteExpertsArgs args) {
  extern __shared__ float route_shared[];
  wait_for_previous();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t row = int64_t{blockIdx.x} * kWarps + warp;
  if (row >= live_rows(args.counts, RowKind::kToken, 0, args.max_rows)) return;
  float* own = route_shared + warp * 3 * args.num_experts;
  WarpRow of_row{args, args.logits + row * args.num_experts, own, own + args.num_experts,
                 own + 2 * args.num_experts};
  of_row.score();
  of_row.open_groups();
  of_row.choose(args.ids + row * args.lists.top_k, args.weights + row * args.lists.top_k);
}

// A block lists the entries of one expert, behind those of the experts before it, which it counts.
// A thread has choices that follow one another, so that entries ascend.
__global__ void __launch_bounds__(kListThreads) list_kernel(RouteExpertsArgs args) {
  __shared__ int scratch[kListThreads];
  wait_for_previous();
  const int rows = live_rows(args.counts, RowKind::kToken, 0, args.max_rows);
  const int choices = rows * args.lists.top_k;
  const int each = ceil_div(choices, kListThreads);
  const int begin = min(static_cast<int>(threadIdx.x) * each, choices);
  const int end = min(begin + each, choices);
  const int expert = static_cast<int>(blockIdx.x);
  int below = 0, own = 0;
  for (int i = begin; i < end; ++i) {
    const int chosen = args.ids[i] - args.first_expert;
    below += chosen >= 0 && chosen < expert ? 1 : 0;
    own += chosen == expert ? 1 : 0;
  }
  block_scan<kListThreads>(below, scratch);
  const int first = scratch[kListThreads - 1];
  int next = first + block_scan<kListThreads>(own, scratch) - own;
  const int last = first + scratch[kListThreads - 1];
  if (threadIdx.x == 0) {
    args.lists.begins[expert] = first;
    if (expert == args.lists.count - 1) args.lists.begins[expert + 1] = last;
  }
  for (int i = begin; i < end; ++i) {
    if (args.ids[i] - args.first_expert == expert) args.lists.entries[next++] = i;
  }
}

}  // namespace

void launch_route_experts(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<RouteExpertsArgs>(packed);
  const size_t shared = sizeof(float) * kWarps * 3 * static_cast<size_t>(args.num_experts);
  if (args.logits != nullptr) {
    launch_kernel(route_kernel, ceil_div(args.max_rows, kWarps), kWarps * 32, shared, stream, args);
  }
  launch_kernel(list_kernel, args.lists.count, kListThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
