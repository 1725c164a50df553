#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec olmoe_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kWidth;
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts_of(config)));
}

// Norms come before the clipping, which no published model asks for.
Status read_olmoe(const ConfigFields& fields, ModelConfig* config) {
  double clip = 0;
  FT_RETURN_IF_ERROR(fields.read_positive("clip_qkv", &clip));
  config->qkv_clip = static_cast<float>(clip);
  return read_mixture(fields, &config->experts, &config->layers);
}

LayerSpec flex_olmo_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kWidth;
  return post_norm_layer(attention, experts_or_mlp(config, layer, experts_of(config)));
}

}  // namespace

// Muennighoff et al. 2024: norms of whole rows of queries and keys, and a mixture in each block.
constinit const Architecture kOlmoeArchitecture = {
    .name = "OlmoeForCausalLM",
    .description = "OLMoE 1B-7B",
    .defaults = R"({"max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "num_experts": 64,
                    "num_experts_per_tok": 8})",
    .decoder = {.layer = olmoe_layer},
    .read = read_olmoe,
};

// Shi et al. 2025: the same with OLMo 2's norms, behind the blocks; experts were trained apart.
constinit const Architecture kFlexOlmoArchitecture = {
    .name = "FlexOlmoForCausalLM",
    .description = "FlexOlmo",
    .defaults = R"({"max_position_embeddings": 4096, "rope_theta": 500000.0, "num_experts": 7,
                    "num_experts_per_tok": 5})",
    .decoder = {.layer = flex_olmo_layer},
    .read = read_olmoe,
};

}  // namespace foretoken
