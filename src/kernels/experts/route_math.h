#pragma once
#include <cmath>

#include "kernels/activation_math.h"
#include "kernels/experts/route_experts.h"
#include "kernels/sample_math.h"

// The arithmetic of routing, shared by the CPU and the CUDA kernel: as in sample_math.h every
// operation rounds once, so that both devices choose the same experts and weigh them alike.
namespace foretoken::route_math {

using sample_math::add;
using sample_math::div;
using sample_math::exp_nonpositive;
using sample_math::mul;
using sample_math::sub;

FT_HD_INLINE float square_root(float x) {
#ifdef __CUDA_ARCH__
  return __fsqrt_rn(x);
#else
  return std::sqrt(x);
#endif
}

// sqrt(log(1 + exp(x))); what is lost where 1 is added to a small exponential is made good by the
// difference that is left of it.
FT_HD_INLINE float sqrt_softplus(float x) {
  const float e = exp_nonpositive(-activation_math::magnitude(x));
  const float sum = add(1.0f, e), rest = sub(sum, 1.0f);
  const float log = rest == 0.0f ? e : div(mul(sample_math::log_unit(sum), e), rest);
  return square_root(x > 0.0f ? add(x, log) : log);
}

// A sum over experts is taken in so many chains, expert e in chain e % kChains, which are then
// added by halves: chain i + 16 to chain i, then i + 8, and so on.
inline constexpr int kChains = 32;

// Whether experts are judged by what becomes of their logits. Otherwise the logits themselves rank
// them, which have the same order and fewer ties.
FT_HD inline bool ranks_by_score(const RouteExpertsArgs& args) {
  if (args.score == ExpertScore::kSoftmaxOfChosen) return false;
  if (args.score == ExpertScore::kSigmoidOfChosen) return false;
  const bool adds_scores = args.num_groups > 1 && args.groups == ExpertGroups::kBestTwo;
  return args.correction != nullptr || adds_scores;
}

// What an expert is judged by, of its logit and its score; and what expert e is ranked by.
FT_HD_INLINE float judged(const RouteExpertsArgs& args, float logit, float score) {
  return ranks_by_score(args) ? score : logit;
}
FT_HD_INLINE float rank_of(const RouteExpertsArgs& args, int e, float logit, float score) {
  const float own = judged(args, logit, score);
  return args.correction != nullptr ? add(own, args.correction[e]) : own;
}

// What a group is ranked by, of its two largest ranks.
FT_HD_INLINE float group_rank(const RouteExpertsArgs& args, float best, float second) {
  return args.groups == ExpertGroups::kBestTwo ? add(best, second) : best;
}

// Whether the sparse mixer leaves an expert out whose logit lies too far below the largest left.
FT_HD_INLINE bool is_far(float logit, float largest, float jitter) {
  const float size = activation_math::magnitude(logit);
  const float factor = size < largest ? largest : size;
  return div(sub(largest, logit), factor) > mul(2.0f, jitter);
}

// Whether the scores of a row's choices are logits, of which those choices alone make a softmax.
FT_HD_INLINE bool softens_chosen(const RouteExpertsArgs& args) {
  return args.score == ExpertScore::kSoftmaxOfChosen;
}
// Whether scores are sigmoids of logits.
FT_HD_INLINE bool takes_sigmoids(const RouteExpertsArgs& args) {
  return args.score == ExpertScore::kSigmoid || args.score == ExpertScore::kSigmoidOfChosen;
}
// Whether they are divided by their sum, taken in the order of the choices.
FT_HD_INLINE bool divides_by_sum(const RouteExpertsArgs& args) {
  return args.normalised != 0 || softens_chosen(args);
}
FT_HD_INLINE float divisor_of(const RouteExpertsArgs& args, float sum) {
  const bool each = args.score == ExpertScore::kSigmoid || args.score == ExpertScore::kSqrtSoftplus;
  return each ? add(sum, 1e-20f) : sum;
}
// The weight of expert `id`, of its share of that sum or its score.
FT_HD_INLINE float scaled_weight(const RouteExpertsArgs& args, int32_t id, float share) {
  const float weight = mul(share, args.scale);
  return args.weight_scales != nullptr ? mul(weight, args.weight_scales[id]) : weight;
}

// The scores of a row's choices, in their order, become its weights.
inline void finish_weights(const RouteExpertsArgs& args, const int32_t* ids, float* weights) {
  const int top_k = args.lists.top_k;
  if (softens_chosen(args)) {
    float largest = weights[0];
    for (int i = 1; i < top_k; ++i) largest = weights[i] > largest ? weights[i] : largest;
    for (int i = 0; i < top_k; ++i) weights[i] = exp_nonpositive(sub(weights[i], largest));
  }
  if (divides_by_sum(args)) {
    float sum = weights[0];
    for (int i = 1; i < top_k; ++i) sum = add(sum, weights[i]);
    for (int i = 0; i < top_k; ++i) weights[i] = div(weights[i], divisor_of(args, sum));
  }
  for (int i = 0; i < top_k; ++i) weights[i] = scaled_weight(args, ids[i], weights[i]);
}

}  // namespace foretoken::route_math
