#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// One tensor has the queries of each key head, it and its values; GGUF files have three.
LayerSpec internlm2_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = attention.fused_by_group = !config.plain_matrices;
  attention.base = "attention.";
  attention.qkv = "wqkv";
  attention.o = "wo";
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.base = "feed_forward.";
  mlp.gate = "w1";
  mlp.up = "w3";
  mlp.down = "w2";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = "attention_norm";
  spec.feed_forward_norm = "ffn_norm";
  return spec;
}

Status translate_internlm2(const ConfigFields& fields, nlohmann::json* json) {
  if (const auto* bias = fields.find("bias")) (*json)["attention_bias"] = *bias;
  return {};
}

}  // namespace

// Cai et al. 2024: Llama's blocks under names of their own.
constinit const Architecture kInternLm2Architecture = {
    .name = "InternLM2ForCausalLM",
    .description = "InternLM 2 and 2.5",
    .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 8})",
    .decoder = {.places = {{{"model.", "output.weight"}, {nullptr, nullptr}}},
                .embedding = "tok_embeddings",
                .layer = internlm2_layer},
    .translate = translate_internlm2,
};

}  // namespace foretoken
