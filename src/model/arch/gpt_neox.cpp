#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec gpt_neox_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.fused_by_group = true;
  attention.base = "attention.";
  attention.qkv = "query_key_value";
  attention.o = "dense";
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.up = "dense_h_to_4h";
  mlp.down = "dense_4h_to_h";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.parallel = config.parallel_blocks;
  return spec;
}

Status translate_gpt_neox(const ConfigFields& fields, Json* json) {
  if (const Json* part = fields.find("rotary_pct")) (*json)["partial_rotary_factor"] = *part;
  if (const Json* base = fields.find("rotary_emb_base")) (*json)["rope_theta"] = *base;
  (*json)["mlp_bias"] = true;
  return {};
}

Status read_gpt_neox(const ConfigFields& fields, ModelConfig* config) {
  return fields.read_flag("use_parallel_residual", &config->parallel_blocks);
}

}  // namespace

// Black et al. 2022: attention and MLP read the same residual through norms of their own, a quarter
// of each head turns, and one matrix holds q, k and v of each head.
constinit const Architecture kGptNeoXArchitecture = {
    .name = "GPTNeoXForCausalLM",
    .description = "GPT-NeoX and Pythia",
    .defaults = R"({"max_position_embeddings": 2048, "layer_norm_eps": 1e-5, "hidden_act": "gelu",
                    "attention_bias": true, "use_parallel_residual": true, "rotary_pct": 0.25,
                    "rotary_emb_base": 10000.0})",
    .decoder = {.places = {{{"gpt_neox.", "embed_out.weight"}, {nullptr, nullptr}}},
                .embedding = "embed_in",
                .last_norm = "final_layer_norm",
                .layer = gpt_neox_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_gpt_neox,
    .read = read_gpt_neox,
};

}  // namespace foretoken
