#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec deepseek_v1_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(gqa_of(config, layer), experts_or_mlp(config, layer, experts_of(config)));
}

Status read_deepseek_v1(const ConfigFields& fields, ModelConfig* config) {
  return read_mixture(fields, &config->experts, &config->layers);
}

}  // namespace

// Dai et al. 2024: Llama's blocks, and behind the first layers mixtures of small experts beside
// some that all rows share. The text part of DeepSeek VL 2 Tiny and DeepSeek OCR is of this kind,
// under V2's name with use_mla false (text_part.cpp).
constinit const Architecture kDeepseekV1Architecture = {
    .name = "DeepseekForCausalLM",
    .description = "DeepSeek MoE 16B",
    .defaults = R"({"max_position_embeddings": 2048, "first_k_dense_replace": 0,
                    "norm_topk_prob": false})",
    .decoder = {.layer = deepseek_v1_layer},
    .read = read_deepseek_v1,
};

}  // namespace foretoken
