#pragma once
#include <climits>

#include "kernels/cuda/common.cuh"
#include "kernels/experts/route_experts.h"
#include "kernels/experts/route_math.h"

namespace foretoken::cuda {

inline constexpr uint32_t kAllLanes = 0xffffffffu;

// A place among others: the larger key is better, then the lower place. A NaN is below every
// number, and no place below that.
struct RankedPlace {
  uint32_t key = 0;
  int place = INT_MAX;

  // For places in ascending order.
  __device__ void meet(uint32_t other, int at) {
    if (other > key || place == INT_MAX) *this = {other, at};
  }
  // The best place of a warp.
  __device__ int of_warp() const {
    const uint32_t best = __reduce_max_sync(kAllLanes, key);
    return __reduce_min_sync(kAllLanes, key == best ? place : INT_MAX);
  }
};

__device__ inline uint32_t rank_key(float value) {
  return isnan(value) ? 0 : sample_math::ordered_key(value);
}

// The chains of route_math.h, of which each lane has one.
__device__ inline float chained_sum(float chain) {
  for (int half = route_math::kChains / 2; half > 0; half /= 2) {
    chain = route_math::add(chain, __shfl_down_sync(kAllLanes, chain, half));
  }
  return __shfl_sync(kAllLanes, chain, 0);
}

// One row of a warp, in registers: lane i has experts i, i + 32, ..., at most Each of them. Bit j
// of `open`: its j-th exists and may be chosen.
template <int Each>
struct WarpRow {
  const RouteExpertsArgs& args;
  float logits[Each];
  float scores[Each];
  uint32_t keys[Each];  // by which experts are ranked
  float ranks[Each];
  uint32_t exists = 0;
  uint32_t open = 0;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  // All is asked for before any of it is used.
  __device__ WarpRow(const RouteExpertsArgs& all, int64_t row) : args(all) {
    const float* from = args.logits + row * args.num_experts;
    float correction[Each];
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      const int e = j * 32 + lane();
      const bool valid = e < args.num_experts;
      exists |= valid ? 1u << j : 0;
      logits[j] = valid ? from[e] : 0.0f;
      correction[j] = valid && args.correction != nullptr ? args.correction[e] : 0.0f;
    }
    score();
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      ranks[j] = route_math::judged(args, logits[j], scores[j]);
      if (args.correction != nullptr) ranks[j] = route_math::add(ranks[j], correction[j]);
      keys[j] = rank_key(ranks[j]);
    }
  }

  __device__ int best_of(const uint32_t (&from)[Each], uint32_t among) const {
    RankedPlace best;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      if ((among >> j & 1) != 0) best.meet(from[j], j * 32 + lane());
    }
    return best.of_warp();
  }

  // What the lane of expert e has of it.
  __device__ float value_of(const float (&from)[Each], int e) const {
    float own = 0;
#pragma unroll
    for (int j = 0; j < Each; ++j) own = e / 32 == j ? from[j] : own;
    return __shfl_sync(kAllLanes, own, e % 32);
  }

  __device__ void softmax() {
    uint32_t logit_keys[Each];
#pragma unroll
    for (int j = 0; j < Each; ++j) logit_keys[j] = rank_key(logits[j]);
    const float largest = value_of(logits, best_of(logit_keys, exists));
    float chain = 0;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      scores[j] = route_math::exp_nonpositive(route_math::sub(logits[j], largest));
      if ((exists >> j & 1) != 0) chain = route_math::add(chain, scores[j]);
    }
    const float sum = chained_sum(chain);
#pragma unroll
    for (int j = 0; j < Each; ++j) scores[j] = route_math::div(scores[j], sum);
  }

  __device__ void score() {
    if (args.score == ExpertScore::kSoftmax) return softmax();
#pragma unroll
    for (int j = 0; j < Each; ++j) scores[j] = logits[j];
    if (route_math::takes_sigmoids(args)) activation_math::sigmoid(scores);
    if (args.score != ExpertScore::kSqrtSoftplus) return;
#pragma unroll
    for (int j = 0; j < Each; ++j) scores[j] = route_math::sqrt_softplus(scores[j]);
  }

  // What a group is ranked by whose experts are the j-th of all lanes.
  __device__ float rank_of_lanes(uint32_t key, float rank) const {
    const uint32_t best_key = __reduce_max_sync(kAllLanes, key);
    const int best = __ffs(__ballot_sync(kAllLanes, key == best_key)) - 1;
    const float best_rank = __shfl_sync(kAllLanes, rank, best);
    if (args.groups == ExpertGroups::kBest) return best_rank;
    const bool other = lane() != best;
    const uint32_t second_key = __reduce_max_sync(kAllLanes, other ? key : 0);
    const int second = __ffs(__ballot_sync(kAllLanes, other && key == second_key)) - 1;
    return route_math::group_rank(args, best_rank, __shfl_sync(kAllLanes, rank, second));
  }

  // open_groups for groups of 32 experts: group j is the j-th of all lanes, and ranked in lane j.
  __device__ void open_groups_of_lanes() {
    uint32_t key = 0;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      const float rank = rank_of_lanes(keys[j], ranks[j]);
      if (j == lane()) key = rank_key(rank);
    }
    int better = 0;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      const uint32_t other = __shfl_sync(kAllLanes, key, j);
      const bool comes_first = other > key || (other == key && j < lane());
      better += j < args.num_groups && comes_first ? 1 : 0;
    }
    const bool chosen = lane() < args.num_groups && better < args.top_groups;
    open = exists & __ballot_sync(kAllLanes, chosen);
  }

  // Opens the experts that may be chosen; what is chosen among the groups is marked in them.
  // shared: num_experts + num_groups floats of this warp, where there are groups.
  __device__ void open_groups(float* shared) {
    open = exists;
    if (args.num_groups == 1) return;
    if (args.num_experts == 32 * args.num_groups) return open_groups_of_lanes();
    float* groups = shared + args.num_experts;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      if ((exists >> j & 1) != 0) shared[j * 32 + lane()] = ranks[j];
    }
    __syncwarp();
    const int size = args.num_experts / args.num_groups;
    for (int g = 0; g < args.num_groups; ++g) {
      const float rank = rank_of_group(shared + g * size, size);
      if (lane() == 0) groups[g] = rank;
    }
    __syncwarp();
    uint32_t chosen = 0;
    for (int i = 0; i < args.top_groups; ++i) {
      const int group =
          best_among(groups, args.num_groups, [&](int g) { return (chosen >> g / 32 & 1) == 0; });
      if (group % 32 == lane()) chosen |= 1u << group / 32;
    }
    __syncwarp();
    for (int g = lane(); g < args.num_groups; g += 32) {
      groups[g] = (chosen >> g / 32 & 1) != 0 ? 1.0f : 0.0f;
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      const int e = j * 32 + lane();
      if ((exists >> j & 1) != 0 && groups[e / size] == 0.0f) open &= ~(1u << j);
    }
  }

  // The best of `count` values in shared memory that count, lane i looking at places i, i + 32, ...
  template <class Counts>
  __device__ static int best_among(const float* values, int count, const Counts& counts) {
    RankedPlace best;
    for (int i = lane(); i < count; i += 32) {
      if (counts(i)) best.meet(rank_key(values[i]), i);
    }
    return best.of_warp();
  }

  __device__ float rank_of_group(const float* of_group, int size) const {
    const int best = best_among(of_group, size, [](int) { return true; });
    if (args.groups == ExpertGroups::kBest || size == 1) return of_group[best];
    const int second = best_among(of_group, size, [&](int i) { return i != best; });
    return route_math::group_rank(args, of_group[best], of_group[second]);
  }

  // As on the CPU: what `best`, just chosen, weighs among those near it.
  __device__ float mixed_weight(int best) const {
    const float largest = value_of(logits, best);
    float chain = 0;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      if ((exists >> j & 1) == 0) continue;
      const bool counts = ((open >> j & 1) != 0 || j * 32 + lane() == best) &&
                          !route_math::is_far(logits[j], largest, args.jitter);
      const float near =
          counts ? route_math::exp_nonpositive(route_math::sub(logits[j], largest)) : 0.0f;
      chain = route_math::add(chain, near);
    }
    return route_math::div(route_math::exp_nonpositive(0.0f), chained_sum(chain));
  }

  // finish_weights, where lane i has choice i.
  __device__ float finished_weight(int32_t id, float weight) const {
    const int top_k = args.lists.top_k;
    if (route_math::softens_chosen(args)) {
      float largest = __shfl_sync(kAllLanes, weight, 0);
      for (int i = 1; i < top_k; ++i) {
        const float other = __shfl_sync(kAllLanes, weight, i);
        largest = other > largest ? other : largest;
      }
      weight = route_math::exp_nonpositive(route_math::sub(weight, largest));
    }
    if (route_math::divides_by_sum(args)) {
      float sum = __shfl_sync(kAllLanes, weight, 0);
      for (int i = 1; i < top_k; ++i) {
        sum = route_math::add(sum, __shfl_sync(kAllLanes, weight, i));
      }
      weight = route_math::div(weight, route_math::divisor_of(args, sum));
    }
    return lane() < top_k ? route_math::scaled_weight(args, id, weight) : 0.0f;
  }

  // Lane i returns choice i, or -1 behind the last.
  __device__ int choose(int64_t row) {
    const int top_k = args.lists.top_k;
    const int32_t* listed =
        args.table != nullptr ? args.table + int64_t{args.token_ids[row]} * top_k : nullptr;
    int32_t id = -1;
    float weight = 0;
    for (int slot = 0; slot < top_k; ++slot) {
      const int best = args.table != nullptr ? listed[slot] : best_of(keys, open);
      if (best % 32 == lane()) open &= ~(1u << best / 32);
      const float found =
          args.score == ExpertScore::kSparseMixer ? mixed_weight(best) : value_of(scores, best);
      if (lane() == slot) {
        id = best;
        weight = found;
      }
    }
    weight = finished_weight(id, weight);
    if (lane() < top_k) {
      args.ids[row * top_k + lane()] = id;
      args.weights[row * top_k + lane()] = weight;
    }
    return id;
  }
};

// Floats of shared memory that a warp needs to route rows.
__host__ __device__ inline int route_floats(const RouteExpertsArgs& args) {
  return args.num_groups > 1 ? args.num_experts + args.num_groups : 0;
}

// Chooses the experts of a row, by a whole warp; shared: route_floats of its own. Lane i returns
// choice i.
template <int Each>
__device__ int route_row(const RouteExpertsArgs& args, int64_t row, float* shared) {
  WarpRow<Each> of_row(args, row);
  of_row.open_groups(shared);
  const int id = of_row.choose(row);
  __syncwarp();
  return id;
}

// Calls use(integral constant) with as many experts as a lane has.
template <class Use>
void with_each(int num_experts, const Use& use) {
  if (num_experts <= 64) return use(std::integral_constant<int, 2>());
  if (num_experts <= 128) return use(std::integral_constant<int, 4>());
  if (num_experts <= 256) return use(std::integral_constant<int, 8>());
  use(std::integral_constant<int, kMaxExperts / 32>());
}

}  // namespace foretoken::cuda
