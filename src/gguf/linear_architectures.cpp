#include "gguf/linear_architectures.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "gguf/container/gguf_file.h"
#include "gguf/latent_architectures.h"

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

// Of the one module, whose layer is as the model's with attention.
constexpr std::string_view kDeltaModules = "mtp.layers.";
constexpr GgufName kDeltaModuleEnds[] = {
    {"nextn.eh_proj.weight", "mtp.fc.weight"},
    {"nextn.enorm.weight", "mtp.pre_fc_norm_embedding.weight"},
    {"nextn.hnorm.weight", "mtp.pre_fc_norm_hidden.weight"},
    {"nextn.shared_head_norm.weight", "mtp.norm.weight"},
    {"nextn.embed_tokens.weight", "mtp.embed_tokens.weight"},
    {"nextn.shared_head_head.weight", "mtp.layers.0.shared_head.head.weight"}};

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

// Kimi's delta attention, whose layers have no heads of keys in files, beside DeepSeek's latents,
// and what K3 has more.
constexpr auto kKimiTensors = joined_rows(
    kLatentTensors,
    std::to_array<GgufName>({{"ssm_conv1d_q", "self_attn.q_conv1d"},
                             {"ssm_conv1d_k", "self_attn.k_conv1d"},
                             {"ssm_conv1d_v", "self_attn.v_conv1d"},
                             {"ssm_f_a", "self_attn.f_a_proj"},
                             {"ssm_f_b", "self_attn.f_b_proj"},
                             {"ssm_beta", "self_attn.b_proj"},
                             {"ssm_g_a", "self_attn.g_a_proj"},
                             {"ssm_g_b", "self_attn.g_b_proj"},
                             {"ssm_g", "self_attn.g_proj"},
                             {"attn_gate", "self_attn.g_proj"},
                             {"attn_res_score", "self_attention_res_score"},
                             {"ffn_res_score", "mlp_res_score"},
                             {"ffn_routed_down", "block_sparse_moe.routed_expert_down_proj"},
                             {"ffn_routed_up", "block_sparse_moe.routed_expert_up_proj"},
                             {"ffn_routed_norm", "block_sparse_moe.routed_expert_norm"},
                             {"ssm_a", "self_attn.A"},
                             {"ssm_dt.bias", "self_attn.dt_bias"},
                             {"ssm_norm", "self_attn.o_norm"},
                             {"ffn_gate_inp", "block_sparse_moe.gate"},
                             {"exp_probs_b.bias", "block_sparse_moe.gate.e_score_correction_bias"},
                             {"ffn_gate_exps", "block_sparse_moe.experts.w1"},
                             {"ffn_up_exps", "block_sparse_moe.experts.w3"},
                             {"ffn_down_exps", "block_sparse_moe.experts.w2"},
                             {"ffn_gate_shexp", "block_sparse_moe.shared_experts.gate_proj"},
                             {"ffn_up_shexp", "block_sparse_moe.shared_experts.up_proj"},
                             {"ffn_down_shexp", "block_sparse_moe.shared_experts.down_proj"}}));
constexpr GgufName kKimiModel[] = {
    {"output_res_score.weight", "model.output_attn_res_score.weight"}};
constexpr auto kKimiKeys = joined_rows(
    kLatentKeys,
    std::to_array<GgufKey>({{"kda.head_dim", "kda_head_dim"},
                            {"kda.gate_lower_bound", "gate_lower_bound"},
                            {"expert_latent_length", "routed_expert_hidden_size"},
                            {"attn_res.block_size", "attn_res_block_size"},
                            {"activation.situ_beta", "activation_situ_beta"},
                            {"activation.situ_linear_beta", "activation_situ_linear_beta"},
                            {"ssm.conv_kernel", "conv_kernel"},
                            {"leading_dense_block_count", "first_k_dense_replace"},
                            {"expert_count", "num_experts"},
                            {"expert_used_count", "num_experts_per_token"},
                            {"expert_shared_count", "num_shared_experts"},
                            {"expert_feed_forward_length", "moe_intermediate_size"},
                            {"expert_weights_scale", "routed_scaling_factor"},
                            {"expert_weights_norm", "moe_renormalize", false, true},
                            {"expert_group_count", "num_expert_group"},
                            {"expert_group_used_count", "topk_group"}}));

bool any_ends_with(const GgufFile& file, std::string_view ending) {
  return std::any_of(file.tensors().begin(), file.tensors().end(),
                     [&](const auto& tensor) { return tensor.first.ends_with(ending); });
}

// Folders count layers from 1.
Status read_kimi_file(const GgufFile& file, Json& config) {
  for (const char* key : {"kda_head_dim", "conv_kernel", "kv_lora_rank", "qk_head_dim"}) {
    if (config.contains(key)) continue;
    return file.error("no key says '" + std::string(key) + "'; convert the model again");
  }
  const Json heads = config["num_key_value_heads"];
  Json attending = Json::array();
  for (int64_t i = 0; i < config["num_hidden_layers"].get<int64_t>(); ++i) {
    const auto at = static_cast<size_t>(i);
    const bool attends = heads.is_array() ? at < heads.size() && heads[at] > 0 : heads > 0;
    if (attends) attending.push_back(i + 1);
  }
  config["num_key_value_heads"] = config["num_attention_heads"];
  config["linear_attn_config"] = {{"full_attn_layers", std::move(attending)},
                                  {"num_heads", config["num_attention_heads"]},
                                  {"head_dim", config["kda_head_dim"]},
                                  {"short_conv_kernel_size", config["conv_kernel"]},
                                  {"use_full_rank_gate", any_ends_with(file, ".ssm_g.weight")}};
  if (config.contains("gate_lower_bound")) {
    config["linear_attn_config"]["gate_lower_bound"] = config["gate_lower_bound"];
  }
  config["mla_use_output_gate"] = any_ends_with(file, ".attn_gate.weight");
  config["latent_moe_use_norm"] = any_ends_with(file, ".ffn_routed_norm.weight");
  config["qk_nope_head_dim"] =
      config["qk_head_dim"].get<int64_t>() - config.value("qk_rope_head_dim", int64_t{0});
  for (const char* key :
       {"kda_head_dim", "conv_kernel", "qk_head_dim", "value_length", "gate_lower_bound"}) {
    config.erase(key);
  }
  return {};
}

// Converters of Qwen 3.5 put value heads into another order than folders have.
constexpr std::string_view kTiled = R"({"linear_heads_tiled": true})";

constexpr GgufArchitecture kLinearArchitectures[] = {
    {.name = "qwen3next",
     .hf_class = "Qwen3NextForCausalLM",
     .model_type = "qwen3_next",
     .whole_norms = true,
     .tensors = kDeltaTensors,
     .modules = kDeltaModules,
     .module_ends = kDeltaModuleEnds,
     .keys = kDeltaKeys,
     .fields = R"({"norm_topk_prob": true})",
     .complete = complete_delta},
    {.name = "qwen35",
     .hf_class = "Qwen3_5ForCausalLM",
     .model_type = "qwen3_5_text",
     .whole_norms = true,
     .tensors = kDeltaTensors,
     .modules = kDeltaModules,
     .module_ends = kDeltaModuleEnds,
     .keys = kDeltaKeys,
     .fields = kTiled,
     .complete = complete_delta},
    {.name = "qwen35moe",
     .hf_class = "Qwen3_5MoeForCausalLM",
     .model_type = "qwen3_5_moe_text",
     .whole_norms = true,
     .tensors = kDeltaTensors,
     .modules = kDeltaModules,
     .module_ends = kDeltaModuleEnds,
     .keys = kDeltaKeys,
     .fields = kTiled,
     .complete = complete_delta},
    {.name = "kimi-linear",
     .hf_class = "KimiLinearForCausalLM",
     .model_type = "kimi_linear",
     .tensors = kKimiTensors,
     .keys = kKimiKeys,
     .fields = R"({"first_k_dense_replace": 0, "num_shared_experts": 0, "mla_use_nope": true})",
     .read = read_kimi_file},
    {.name = "kimi-k3",
     .hf_class = "KimiK3ForConditionalGeneration",
     .model_type = "kimi_k3",
     .tensors = kKimiTensors,
     .model_tensors = kKimiModel,
     .keys = kKimiKeys,
     .fields = R"({"first_k_dense_replace": 0, "num_shared_experts": 0, "mla_use_nope": true,
                   "hidden_act": "situ"})",
     .read = read_kimi_file},
};

}  // namespace

std::span<const GgufArchitecture> linear_gguf_architectures() { return kLinearArchitectures; }

}  // namespace foretoken
