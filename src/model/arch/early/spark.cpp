#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec spark_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.qkv = "q_k_v_proj";
  attention.o = "out_proj";
  if (config.head_gates) attention.gates = HeadGates::kEachHead;
  attention.gate_proj = "g_proj";
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

Status read_spark(const ConfigFields& fields, ModelConfig* config) {
  config->head_gates = true;
  FT_RETURN_IF_ERROR(fields.read_flag("headwise_attn_output_gate", &config->head_gates));
  const nlohmann::json* mode = fields.find("gate_attn_act_mode");
  if ((mode != nullptr && *mode != "sigmoid") || config->attention_bias) {
    return unsupported(fields.where() +
                       ": gate_attn_act_mode other than sigmoid, or attention_bias, is not "
                       "supported; use a model like the published Spark X2.5");
  }
  return {};
}

}  // namespace

// iFlytek 2026: Llama's blocks with one gate for what each head attended to; three layers with a
// window, whose heads turn whole, to one without, of whose heads a quarter turns.
constinit const Architecture kSparkArchitecture = {
    .name = "Spark2_5ForCausalLM",
    .description = "Spark X2.5",
    .defaults = R"({"max_position_embeddings": 8192, "num_key_value_heads": 2, "head_dim": 256,
                    "hidden_act": "gelu", "sliding_window": 512, "sliding_window_pattern": 4,
                    "rope_parameters": {
                      "full_attention": {"rope_theta": 5000000.0, "partial_rotary_factor": 0.25},
                      "sliding_attention": {"rope_theta": 10000.0}}})",
    .window_rule = WindowRule::kPattern,
    .decoder = {.embedding = "embedding", .layer = spark_layer},
    .read = read_spark,
};

}  // namespace foretoken
