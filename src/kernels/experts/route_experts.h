#pragma once
#include <cstdint>

#include "device/queue.h"
#include "kernels/experts/expert_lists.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// What a router makes of its logits.
enum class ExpertScore : int32_t {
  kSoftmax,          // over all experts (Mixtral, Qwen, DeepSeek V2)
  kSigmoid,          // each by itself (DeepSeek V3, Llama 4)
  kSigmoidOfChosen,  // experts are chosen by their logits and corrections of these, then sigmoids
                     // of the logits of those (Kolibri 1)
  kSoftmaxOfChosen,  // experts are chosen by their logits, then softmax over those (gpt-oss)
  kSqrtSoftplus,     // sqrt(log(1 + exp(logit))), each by itself (DeepSeek V4)
  kSparseMixer,      // Phi 3.5 (Liu et al. 2023) at inference: one after the other, each weighed
                     // among the experts whose logits lie near the largest that is left
};

// How a group of experts is judged, where only some groups may give experts.
enum class ExpertGroups : int32_t {
  kBest,     // by its best expert (DeepSeek V2)
  kBestTwo,  // by the sum of its two best (DeepSeek V3)
};

// Chooses top_k of the experts for each live token row and lists the rows of each expert. A row's
// choice depends on its own logits alone.
//   score = softmax(logits), sigmoid(logits) or sqrt(softplus(logits)), in float;
//   experts are ranked by score + correction (or, as said above, logit + correction), the lower id
//   first where these are equal; with groups, only those of the top_groups best groups (ranked the
//   same way) count; weight = score of the chosen (without the correction), divided by their sum
//   where normalised (plus 1e-20 where scores are each by themselves), times `scale`, times the
//   weight_scales of its expert where these are given.
// With a table the experts of a row are those that it has for the row's token, in its order, and
// nothing is ranked (DeepSeek V4's first layers).
// Without logits, ids and weights are those of rows that were routed before, elsewhere, and are
// only listed. Slots of a row are in the order of that ranking. Which expert is chosen never
// depends on rounding that differs between devices except through the logits themselves.
//
// Example (DeepSeek V3's way): scores 0.9 0.2 | 0.6 0.5 in two groups, no correction, top_groups 1,
// top_k 2. By their two best the groups have 1.1 each; the lower one wins the tie, so experts 0 and
// 1 are chosen with 0.9 and 0.2, normalised 0.82 and 0.18. With a correction of 0.1 for expert 3
// the second group has 1.2: experts 2 and 3 tie at 0.6, and are chosen in this order, with 0.55 and
// 0.45.
struct RouteExpertsArgs {
  static constexpr Op kOp = Op::kRouteExperts;
  const StepCounts* counts;
  const float* logits;      // [max_rows, num_experts] or null
  const float* correction;  // [num_experts] or null
  int32_t* ids;             // [max_rows, top_k]: the chosen experts, of all ranks
  float* weights;           // [max_rows, top_k]
  ExpertLists lists;        // of experts [first_expert, first_expert + lists.count)
  int32_t first_expert;
  int32_t num_experts;  // <= kMaxExperts
  int32_t max_rows;
  ExpertScore score;
  int32_t num_groups = 1;  // divides num_experts
  int32_t top_groups = 1;
  ExpertGroups groups = ExpertGroups::kBest;
  int32_t normalised = 0;
  float scale = 1;
  float jitter = 0;                      // of kSparseMixer: how near, as a share of the logit
  const float* weight_scales = nullptr;  // [num_experts] or null (Gemma 4)
  const int32_t* table = nullptr;        // [vocabulary, top_k] or null
  const int32_t* token_ids = nullptr;    // [max_rows], with a table
};

void route_experts(Queue& queue, const RouteExpertsArgs& args);

}  // namespace foretoken
