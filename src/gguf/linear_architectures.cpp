#include "gguf/linear_architectures.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Layers with attention have Llama's names, the others these; rates of decays are no logarithms,
// and biases of decays stand under the name of a matrix that is not there.
constexpr GgufName kDeltaTensors[] = {{"post_attention_norm", "post_attention_layernorm"},
                                      {"attn_qkv", "linear_attn.in_proj_qkv"},
                                      {"attn_gate", "linear_attn.in_proj_z"},
                                      {"ssm_ba", "linear_attn.in_proj_ba"},
                                      {"ssm_alpha", "linear_attn.in_proj_a"},
                                      {"ssm_beta", "linear_attn.in_proj_b"},
                                      {"ssm_conv1d", "linear_attn.conv1d"},
                                      {"ssm_a", "linear_attn.A"},
                                      {"ssm_dt.bias", "linear_attn.dt_bias"},
                                      {"ssm_norm", "linear_attn.norm"},
                                      {"ssm_out", "linear_attn.out_proj"},
                                      {"ffn_gate_inp", "mlp.gate"},
                                      {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                      {"ffn_up_exps", "mlp.experts.up_proj"},
                                      {"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"},
                                      {"ffn_down_exps", "mlp.experts.down_proj"},
                                      {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
                                      {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                                      {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                                      {"ffn_down_shexp", "mlp.shared_expert.down_proj"}};

constexpr GgufKey kDeltaKeys[] = {
    {"ssm.conv_kernel", "linear_conv_kernel_dim"},
    {"ssm.state_size", "linear_key_head_dim"},
    {"ssm.group_count", "linear_num_key_heads"},
    {"ssm.time_step_rank", "linear_num_value_heads"},
    {"ssm.inner_size", "inner_size"},
    {"full_attention_interval", "full_attention_interval"},
    {"nextn_predict_layers", "num_nextn_predict_layers"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};

// Layers behind those of the model are a draft module's.
void complete_delta(Json& config) {
  const auto heads = config.value("linear_num_value_heads", int64_t{0});
  const auto inner = config.value("inner_size", int64_t{0});
  if (heads > 0) config["linear_value_head_dim"] = inner / heads;
  config.erase("inner_size");
  const auto modules = config.value("num_nextn_predict_layers", int64_t{0});
  config["num_hidden_layers"] = config.value("num_hidden_layers", int64_t{0}) - modules;
}

// Converters of Qwen 3.5 put value heads into another order than folders have.
constexpr std::string_view kTiled = R"({"linear_heads_tiled": true})";

constexpr GgufArchitecture kLinearArchitectures[] = {
    {.name = "qwen3next",
     .hf_class = "Qwen3NextForCausalLM",
     .model_type = "qwen3_next",
     .whole_norms = true,
     .tensors = kDeltaTensors,
     .keys = kDeltaKeys,
     .fields = R"({"norm_topk_prob": true})",
     .complete = complete_delta},
    {.name = "qwen35",
     .hf_class = "Qwen3_5ForCausalLM",
     .model_type = "qwen3_5_text",
     .whole_norms = true,
     .tensors = kDeltaTensors,
     .keys = kDeltaKeys,
     .fields = kTiled,
     .complete = complete_delta},
    {.name = "qwen35moe",
     .hf_class = "Qwen3_5MoeForCausalLM",
     .model_type = "qwen3_5_moe_text",
     .whole_norms = true,
     .tensors = kDeltaTensors,
     .keys = kDeltaKeys,
     .fields = kTiled,
     .complete = complete_delta},
};

}  // namespace

std::span<const GgufArchitecture> linear_gguf_architectures() { return kLinearArchitectures; }

}  // namespace foretoken
