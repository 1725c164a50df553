#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/activation.h"
#include "kernels/experts/route_experts.h"
#include "model/config/config_fields.h"
#include "model/config/layer_pattern.h"

namespace foretoken {

// The fields that a mixture was read from, for messages about tensors that they do not describe.
struct ExpertFieldNames {
  std::string count;  // in quotes; empty: no mixture was asked for
  std::string inner;
  std::string layers;  // those that choose the layers, each in quotes; empty: there are none
};

// What config.json says about a mixture of experts, the same in all layers that have one.
struct ExpertConfig {
  int32_t count = 0;       // 0: the model has none
  int32_t zero_count = 0;  // more of them, as of ExpertsSpec
  int32_t top_k = 0;
  int32_t inner = 0;         // of an expert
  int32_t shared_inner = 0;  // of what all rows share; 0: nothing
  int32_t latent = 0;        // as of ExpertsSpec
  ExpertScore score = ExpertScore::kSoftmax;
  int32_t num_groups = 1;
  int32_t top_groups = 1;
  ExpertGroups groups = ExpertGroups::kBest;
  bool normalised = false;
  bool correction = false;   // of scores, while experts are chosen
  float scale = 1;           // of the weights
  float jitter = 0;          // as of RouteExpertsArgs
  bool latent_norm = false;  // the sum of experts is normed before it is made wide
  GateClamp clamp;           // where has_gate_numbers(activation)
  ExpertFieldNames names;
};

// Reads the fields of a mixture under the names that DeepSeek, Qwen, Mixtral and their kin give
// them; leaves `out` as it is, a mixture of none, where there are none. An architecture sets in
// `out` beforehand what its files do not say. InvalidArgument names the field at fault.
Status read_expert_config(const ConfigFields& fields, ExpertConfig* out);

// Marks the layers whose feed-forward part is the mixture: by first_k_dense_replace,
// moe_layer_freq (a number or a list), decoder_sparse_step, mlp_only_layers,
// interleave_moe_layer_step, moe_layers, moe_layer_interval with its bounds, and mlp_layer_types;
// all of them where none of these is there.
Status mark_expert_layers(const ConfigFields& fields, std::vector<LayerConfig>* layers);

// Both; no layer is marked where there are no experts.
Status read_mixture(const ConfigFields& fields, ExpertConfig* out,
                    std::vector<LayerConfig>* layers);

// Unsupported for a hidden_act that is not silu, of a family whose gates are cut at swiglu_limit.
Status check_cut_activation(const ConfigFields& fields);

}  // namespace foretoken
