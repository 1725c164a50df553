#pragma once
#include <climits>

#include "kernels/cuda/common.cuh"
#include "kernels/experts/route_experts.h"
#include "kernels/experts/route_math.h"

namespace foretoken::cuda {

inline constexpr uint32_t kAllLanes = 0xffffffffu;

// By which values are ranked: the larger key is better. 0: there is no value; a NaN is below every
// number.
inline constexpr uint32_t kNoKey = 0;
__device__ inline uint32_t rank_key(float value) {
  return isnan(value) ? 1 : sample_math::ordered_key(value);
}

// A place among others: the larger key is better, then the lower place.
struct RankedPlace {
  uint32_t key;
  int place;

  // Becomes the better of two, where `later` has the higher place.
  __device__ void meet(const RankedPlace& later) {
    if (later.key > key) *this = later;
  }
  // The best place of a warp.
  __device__ int of_warp() const {
    const uint32_t best = __reduce_max_sync(kAllLanes, key);
    return __reduce_min_sync(kAllLanes, key == best ? place : INT_MAX);
  }
};

// The two best keys of some.
struct BestTwo {
  uint32_t best = kNoKey;
  uint32_t second = kNoKey;

  __device__ void meet(uint32_t other_best, uint32_t other_second) {
    second = max(min(best, other_best), max(second, other_second));
    best = max(best, other_best);
  }
  // By which a group is ranked that has them.
  __device__ uint32_t key_of_group(const RouteExpertsArgs& args) const {
    if (args.groups == ExpertGroups::kBest || second == kNoKey) return best;
    return rank_key(route_math::group_rank(args, sample_math::float_of_key(best),
                                           sample_math::float_of_key(second)));
  }
};

// The chains of route_math.h, of which each lane has one.
__device__ inline float chained_sum(float chain) {
  for (int half = route_math::kChains / 2; half > 0; half /= 2) {
    chain = route_math::add(chain, __shfl_down_sync(kAllLanes, chain, half));
  }
  return __shfl_sync(kAllLanes, chain, 0);
}

// One row of a warp, in registers: lane i has experts i, i + 32, ..., at most Each of them. What is
// asked of all lanes is asked for several experts or groups at once: an answer takes about as long
// as 30 operations.
template <int Each>
struct WarpRow {
  const RouteExpertsArgs& args;
  float logits[Each];
  float scores[Each];
  uint32_t keys[Each];  // by which experts are ranked; kNoKey: it is none, or may not be chosen

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int expert(int j) { return j * 32 + lane(); }
  __device__ bool exists(int j) const { return expert(j) < args.num_experts; }

  // All is asked for before any of it is used.
  __device__ WarpRow(const RouteExpertsArgs& all, int64_t row) : args(all) {
    const float* from = args.logits + row * args.num_experts;
    float correction[Each];
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      logits[j] = exists(j) ? from[expert(j)] : 0.0f;
      correction[j] = exists(j) && args.correction != nullptr ? args.correction[expert(j)] : 0.0f;
    }
    score();
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      float rank = route_math::judged(args, logits[j], scores[j]);
      if (args.correction != nullptr) rank = route_math::add(rank, correction[j]);
      keys[j] = exists(j) ? rank_key(rank) : kNoKey;
    }
  }

  // The best of this lane's experts: the better of neighbours, then of neighbouring pairs.
  __device__ static RankedPlace best_of(const uint32_t (&from)[Each]) {
    RankedPlace best[Each];
#pragma unroll
    for (int j = 0; j < Each; ++j) best[j] = {from[j], expert(j)};
#pragma unroll
    for (int apart = 1; apart < Each; apart *= 2) {
#pragma unroll
      for (int j = 0; j + apart < Each; j += 2 * apart) best[j].meet(best[j + apart]);
    }
    return best[0];
  }

  // What the lane of this lane's expert `e` has of it; every lane may ask for another one.
  __device__ static float value_of(const float (&from)[Each], int e) {
    float own = 0;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      const float of_lane = __shfl_sync(kAllLanes, from[j], e % 32);
      own = e / 32 == j ? of_lane : own;
    }
    return own;
  }

  __device__ void softmax() {
    uint32_t logit_keys[Each];
#pragma unroll
    for (int j = 0; j < Each; ++j) logit_keys[j] = exists(j) ? rank_key(logits[j]) : kNoKey;
    const float largest = value_of(logits, best_of(logit_keys).of_warp());
    float chain = 0;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      scores[j] = route_math::exp_nonpositive(route_math::sub(logits[j], largest));
      if (exists(j)) chain = route_math::add(chain, scores[j]);
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

  // open_groups for groups of 32 experts: group j is the j-th of all lanes.
  __device__ void open_groups_of_lanes() {
    uint32_t best[Each];
#pragma unroll
    for (int j = 0; j < Each; ++j) best[j] = __reduce_max_sync(kAllLanes, keys[j]);
    int first[Each];
#pragma unroll
    for (int j = 0; j < Each; ++j) first[j] = __ffs(__ballot_sync(kAllLanes, keys[j] == best[j]));
    uint32_t groups[Each];
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      const uint32_t rest = lane() != first[j] - 1 ? keys[j] : kNoKey;
      groups[j] = __reduce_max_sync(kAllLanes, rest);
    }
#pragma unroll
    for (int j = 0; j < Each; ++j) groups[j] = BestTwo{best[j], groups[j]}.key_of_group(args);
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      int better = 0;
#pragma unroll
      for (int i = 0; i < Each; ++i) {
        better += i < j ? groups[i] >= groups[j] : groups[i] > groups[j];
      }
      if (better >= args.top_groups) keys[j] = kNoKey;
    }
  }

  // Leaves the experts of the best groups alone. shared: route_words of this warp.
  __device__ void open_groups(uint32_t* shared) {
    if (args.num_groups == 1) return;
    if constexpr (Each <= 16) {
      if (args.num_experts == 32 * args.num_groups) return open_groups_of_lanes();
    }
    uint32_t* groups = shared + args.num_experts;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      if (exists(j)) shared[expert(j)] = keys[j];
    }
    __syncwarp();
    rank_groups(shared, groups);
    __syncwarp();
    const int size = args.num_experts / args.num_groups;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      if (exists(j) && !is_open(groups, expert(j) / size)) keys[j] = kNoKey;
    }
  }

  // The key of each group, of the keys of its experts: as many lanes for each as there are.
  __device__ void rank_groups(const uint32_t* experts, uint32_t* groups) const {
    const int size = args.num_experts / args.num_groups;
    int lanes = 1;
    while (2 * lanes * args.num_groups <= 32) lanes *= 2;
    for (int first = 0; first < args.num_groups; first += 32 / lanes) {
      const int group = first + lane() / lanes;
      BestTwo two;
      for (int i = lane() % lanes; group < args.num_groups && i < size; i += lanes) {
        two.meet(experts[group * size + i], kNoKey);
      }
      for (int apart = 1; apart < lanes; apart *= 2) {
        const uint32_t best = __shfl_xor_sync(kAllLanes, two.best, apart);
        two.meet(best, __shfl_xor_sync(kAllLanes, two.second, apart));
      }
      if (group < args.num_groups && lane() % lanes == 0) groups[group] = two.key_of_group(args);
    }
  }

  // Whether a group is one of the top_groups best.
  __device__ bool is_open(const uint32_t* groups, int group) const {
    int better = 0;
    for (int i = 0; i < args.num_groups; ++i) {
      better += i < group ? groups[i] >= groups[group] : groups[i] > groups[group];
    }
    return better < args.top_groups;
  }

  // As on the CPU: what `best`, just chosen, weighs among those near it.
  __device__ float mixed_weight(int best) const {
    const float largest = value_of(logits, best);
    float chain = 0;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      if (!exists(j)) continue;
      const bool counts = (keys[j] != kNoKey || expert(j) == best) &&
                          !route_math::is_far(logits[j], largest, args.jitter);
      const float near =
          counts ? route_math::exp_nonpositive(route_math::sub(logits[j], largest)) : 0.0f;
      chain = route_math::add(chain, near);
    }
    return route_math::div(route_math::exp_nonpositive(0.0f), chained_sum(chain));
  }

  // Calls use(choice, value of the lane that has it), in the order of choices.
  template <class Use>
  __device__ void for_choices(float value, const Use& use) const {
    constexpr int kAtOnce = 8;
    for (int first = 0; first < args.lists.top_k; first += kAtOnce) {
      float of_lanes[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) of_lanes[i] = __shfl_sync(kAllLanes, value, first + i);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i < args.lists.top_k) use(first + i, of_lanes[i]);
      }
    }
  }

  // finish_weights, where lane i has choice i.
  __device__ float finished_weight(int32_t id, float weight) const {
    if (route_math::softens_chosen(args)) {
      float largest = 0;
      for_choices(weight, [&](int i, float other) {
        if (i == 0 || other > largest) largest = other;
      });
      weight = route_math::exp_nonpositive(route_math::sub(weight, largest));
    }
    if (route_math::divides_by_sum(args)) {
      float sum = 0;
      for_choices(weight,
                  [&](int i, float one) { sum = i == 0 ? one : route_math::add(sum, one); });
      weight = route_math::div(weight, route_math::divisor_of(args, sum));
    }
    return lane() < args.lists.top_k ? route_math::scaled_weight(args, id, weight) : 0.0f;
  }

  // Takes the best expert for each choice. Lane i has choice i and returns it, -1 behind the last;
  // `mixed` becomes what the sparse mixer weighs it.
  __device__ int take_best(float& mixed) {
    int32_t id = -1;
    for (int slot = 0; slot < args.lists.top_k; ++slot) {
      const int best = best_of(keys).of_warp();
#pragma unroll
      for (int j = 0; j < Each; ++j) keys[j] = expert(j) == best ? kNoKey : keys[j];
      const float found = args.score == ExpertScore::kSparseMixer ? mixed_weight(best) : 0.0f;
      if (lane() == slot) {
        id = best;
        mixed = found;
      }
    }
    return id;
  }

  // Lane i returns choice i, or -1 behind the last.
  __device__ int choose(int64_t row) {
    const int top_k = args.lists.top_k;
    float weight = 0;
    int32_t id = -1;
    if (args.table == nullptr) {
      id = take_best(weight);
    } else if (lane() < top_k) {
      id = args.table[int64_t{args.token_ids[row]} * top_k + lane()];
    }
    if (args.score != ExpertScore::kSparseMixer) weight = value_of(scores, max(id, 0));
    weight = finished_weight(id, weight);
    if (lane() < top_k) {
      args.ids[row * top_k + lane()] = id;
      args.weights[row * top_k + lane()] = weight;
    }
    return id;
  }
};

// Words of shared memory that a warp needs to route rows.
__host__ __device__ inline int route_words(const RouteExpertsArgs& args) {
  return args.num_groups > 1 ? args.num_experts + args.num_groups : 0;
}

// Chooses the experts of a row, by a whole warp; shared: route_words of its own. Lane i gets choice
// i as id. False: there are not so many rows, which is seen when the row's logits, readable up to
// max_rows, are there.
template <int Each>
__device__ bool route_row(const RouteExpertsArgs& args, int64_t row, int rows, uint32_t* shared,
                          int& id) {
  WarpRow<Each> of_row(args, row);
  if (row >= rows) return false;
  of_row.open_groups(shared);
  id = of_row.choose(row);
  __syncwarp();
  return true;
}

// Calls use(integral constant) with as many experts as a lane has.
template <class Use>
void with_each(int num_experts, const Use& use) {
  if (num_experts <= 64) return use(std::integral_constant<int, 2>());
  if (num_experts <= 128) return use(std::integral_constant<int, 4>());
  if (num_experts <= 256) return use(std::integral_constant<int, 8>());
  if (num_experts <= 512) return use(std::integral_constant<int, 16>());
  use(std::integral_constant<int, kMaxExperts / 32>());
}

}  // namespace foretoken::cuda
