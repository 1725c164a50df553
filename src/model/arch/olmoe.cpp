#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec olmoe_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kWidth;
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts_of(config)));
}

// Clipping behind the norms, which no published model asks for.
Status read_olmoe(const ConfigFields& fields, ModelConfig* config) {
  if (fields.find("clip_qkv") != nullptr) {
    return unsupported(fields.where() +
                       ": clip_qkv is not supported beside norms of queries and keys; use a model "
                       "whose clip_qkv is null");
  }
  return read_mixture(fields, &config->experts, &config->layers);
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

}  // namespace foretoken
