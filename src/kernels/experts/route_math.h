#pragma once
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

// A sum over experts is taken in so many chains, expert e in chain e % kChains, which are then
// added by halves: chain i + 16 to chain i, then i + 8, and so on.
inline constexpr int kChains = 32;

// Whether experts are judged by what becomes of their logits. Otherwise the logits themselves rank
// them, which have the same order and fewer ties.
FT_HD inline bool ranks_by_score(const RouteExpertsArgs& args) {
  if (args.score == ExpertScore::kSoftmaxOfChosen) return false;
  const bool adds_scores = args.num_groups > 1 && args.groups == ExpertGroups::kBestTwo;
  return args.correction != nullptr || adds_scores;
}

// What expert e is ranked by, of its logit and its score.
FT_HD_INLINE float rank_of(const RouteExpertsArgs& args, int e, float logit, float score) {
  const float judged = ranks_by_score(args) ? score : logit;
  return args.correction != nullptr ? add(judged, args.correction[e]) : judged;
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

// The scores of a row's choices, in their order, become its weights.
FT_HD_INLINE void finish_weights(const RouteExpertsArgs& args, const int32_t* ids, float* weights) {
  const int top_k = args.lists.top_k;
  if (args.score == ExpertScore::kSoftmaxOfChosen) {
    float largest = weights[0];
    for (int i = 1; i < top_k; ++i) largest = weights[i] > largest ? weights[i] : largest;
    for (int i = 0; i < top_k; ++i) weights[i] = exp_nonpositive(sub(weights[i], largest));
  }
  if (args.normalised != 0 || args.score == ExpertScore::kSoftmaxOfChosen) {
    float sum = weights[0];
    for (int i = 1; i < top_k; ++i) sum = add(sum, weights[i]);
    if (args.score == ExpertScore::kSigmoid) sum = add(sum, 1e-20f);
    for (int i = 0; i < top_k; ++i) weights[i] = div(weights[i], sum);
  }
  for (int i = 0; i < top_k; ++i) weights[i] = mul(weights[i], args.scale);
  if (args.weight_scales == nullptr) return;
  for (int i = 0; i < top_k; ++i) weights[i] = mul(weights[i], args.weight_scales[ids[i]]);
}

}  // namespace foretoken::route_math
