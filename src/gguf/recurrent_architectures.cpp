#include "gguf/recurrent_architectures.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr GgufName kLfm2Tensors[] = {{"attn_norm", "operator_norm"},
                                     {"ffn_norm", "ffn_norm"},
                                     {"attn_output", "self_attn.out_proj"},
                                     {"attn_q_norm", "self_attn.q_layernorm"},
                                     {"attn_k_norm", "self_attn.k_layernorm"},
                                     {"shortconv.in_proj", "conv.in_proj"},
                                     {"shortconv.conv", "conv.conv"},
                                     {"shortconv.out_proj", "conv.out_proj"},
                                     {"ffn_gate", "feed_forward.w1"},
                                     {"ffn_up", "feed_forward.w3"},
                                     {"ffn_down", "feed_forward.w2"},
                                     {"ffn_gate_inp", "feed_forward.gate"},
                                     {"exp_probs_b.bias", "feed_forward.expert_bias"},
                                     {"ffn_gate_exps", "feed_forward.experts.w1"},
                                     {"ffn_up_exps", "feed_forward.experts.w3"},
                                     {"ffn_down_exps", "feed_forward.experts.w2"}};
// Older files have the last norm under the embedding's.
constexpr GgufName kLfm2Model[] = {{"output_norm.weight", "model.embedding_norm.weight"},
                                   {"token_embd_norm.weight", "model.embedding_norm.weight"}};

constexpr GgufKey kLfm2Keys[] = {{"shortconv.l_cache", "conv_L_cache"}};
constexpr GgufKey kLfm2MoeKeys[] = {{"shortconv.l_cache", "conv_L_cache"},
                                    {"leading_dense_block_count", "num_dense_layers"},
                                    {"expert_count", "num_experts"},
                                    {"expert_used_count", "num_experts_per_tok"},
                                    {"expert_feed_forward_length", "moe_intermediate_size"},
                                    {"expert_weights_scale", "routed_scaling_factor"},
                                    {"expert_weights_norm", "norm_topk_prob", false, true}};

// Rates of decays are no logarithms, and biases of steps stand under the name of a matrix that is
// not there.
constexpr GgufName kMamba2Tensors[] = {{"attn_norm", "norm"},
                                       {"ssm_in", "mixer.in_proj"},
                                       {"ssm_conv1d", "mixer.conv1d"},
                                       {"ssm_a", "mixer.A"},
                                       {"ssm_d", "mixer.D"},
                                       {"ssm_dt.bias", "mixer.dt_bias"},
                                       {"ssm_norm", "mixer.norm"},
                                       {"ssm_out", "mixer.out_proj"},
                                       {"attn_q", "mixer.q_proj"},
                                       {"attn_k", "mixer.k_proj"},
                                       {"attn_v", "mixer.v_proj"},
                                       {"attn_output", "mixer.o_proj"},
                                       {"ffn_up", "mixer.up_proj"},
                                       {"ffn_down", "mixer.down_proj"},
                                       {"ffn_gate_inp", "mixer.gate"},
                                       {"ffn_latent_down", "mixer.fc1_latent_proj"},
                                       {"ffn_latent_up", "mixer.fc2_latent_proj"},
                                       {"exp_probs_b.bias", "mixer.gate.e_score_correction_bias"},
                                       {"ffn_up_exps", "mixer.experts.up_proj"},
                                       {"ffn_down_exps", "mixer.experts.down_proj"},
                                       {"ffn_up_shexp", "mixer.shared_experts.up_proj"},
                                       {"ffn_down_shexp", "mixer.shared_experts.down_proj"}};
constexpr GgufName kMamba2Model[] = {{"token_embd.weight", "backbone.embeddings.weight"},
                                     {"output_norm.weight", "backbone.norm_f.weight"}};
constexpr GgufName kGraniteHybridTensors[] = {
    {"ssm_in", "mamba.in_proj"},
    {"ssm_conv1d", "mamba.conv1d"},
    {"ssm_a", "mamba.A"},
    {"ssm_d", "mamba.D"},
    {"ssm_dt.bias", "mamba.dt_bias"},
    {"ssm_norm", "mamba.norm"},
    {"ssm_out", "mamba.out_proj"},
    {"ffn_gate", "shared_mlp.gate_proj"},
    {"ffn_up", "shared_mlp.up_proj"},
    {"ffn_down", "shared_mlp.output_linear"},
    {"ffn_gate_inp", "block_sparse_moe.router.layer"},
    {"ffn_gate_exps", "block_sparse_moe.gate_proj"},
    {"ffn_up_exps", "block_sparse_moe.up_proj"},
    {"ffn_down_exps", "block_sparse_moe.output_linear.weight"},
    {"ffn_gate_shexp", "shared_mlp.gate_proj"},
    {"ffn_up_shexp", "shared_mlp.up_proj"},
    {"ffn_down_shexp", "shared_mlp.output_linear"}};

constexpr GgufKey kMamba2Keys[] = {{"ssm.conv_kernel", "conv_kernel"},
                                   {"ssm.state_size", "state_size"},
                                   {"ssm.group_count", "n_groups"},
                                   {"ssm.time_step_rank", "num_heads"},
                                   {"ssm.inner_size", "inner_size"}};
constexpr GgufKey kNemotronHKeys[] = {
    {"ssm.conv_kernel", "conv_kernel"},
    {"ssm.state_size", "ssm_state_size"},
    {"ssm.group_count", "n_groups"},
    {"ssm.time_step_rank", "mamba_num_heads"},
    {"ssm.inner_size", "inner_size"},
    {"expert_count", "n_routed_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"expert_weights_norm", "norm_topk_prob", false, true},
    {"moe_latent_size", "moe_latent_size"},
    {"nextn_predict_layers", "num_nextn_predict_layers"}};
constexpr GgufKey kGraniteHybridKeys[] = {
    {"ssm.conv_kernel", "mamba_d_conv"},
    {"ssm.state_size", "mamba_d_state"},
    {"ssm.group_count", "mamba_n_groups"},
    {"ssm.time_step_rank", "mamba_n_heads"},
    {"ssm.inner_size", "inner_size"},
    {"attention.scale", "attention_multiplier"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logits_scaling"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_shared_feed_forward_length", "shared_intermediate_size"}};

// Names of the parts of Mamba 1 and of Falcon H1's Mamba 2 beside attention.
constexpr GgufName kFalconH1Tensors[] = {{"ssm_in", "mamba.in_proj"},
                                         {"ssm_conv1d", "mamba.conv1d"},
                                         {"ssm_a", "mamba.A"},
                                         {"ssm_d", "mamba.D"},
                                         {"ssm_dt.bias", "mamba.dt_bias"},
                                         {"ssm_norm", "mamba.norm"},
                                         {"ssm_out", "mamba.out_proj"},
                                         {"ffn_norm", "pre_ff_layernorm"},
                                         {"ffn_gate", "feed_forward.gate_proj"},
                                         {"ffn_up", "feed_forward.up_proj"},
                                         {"ffn_down", "feed_forward.down_proj"}};
constexpr GgufName kJambaTensors[] = {{"ssm_in", "mamba.in_proj"},
                                      {"ssm_conv1d", "mamba.conv1d"},
                                      {"ssm_x", "mamba.x_proj"},
                                      {"ssm_dt", "mamba.dt_proj"},
                                      {"ssm_dt_norm", "mamba.dt_layernorm"},
                                      {"ssm_b_norm", "mamba.b_layernorm"},
                                      {"ssm_c_norm", "mamba.c_layernorm"},
                                      {"ssm_a", "mamba.A"},
                                      {"ssm_d", "mamba.D"},
                                      {"ssm_out", "mamba.out_proj"},
                                      {"ffn_norm", "pre_ff_layernorm"},
                                      {"ffn_gate", "feed_forward.gate_proj"},
                                      {"ffn_up", "feed_forward.up_proj"},
                                      {"ffn_down", "feed_forward.down_proj"},
                                      {"ffn_gate_inp", "feed_forward.router"},
                                      {"ffn_gate_exps", "feed_forward.experts.gate_proj"},
                                      {"ffn_up_exps", "feed_forward.experts.up_proj"},
                                      {"ffn_down_exps", "feed_forward.experts.down_proj"}};
constexpr GgufName kMambaTensors[] = {
    {"attn_norm", "norm"},     {"ssm_in", "mixer.in_proj"},  {"ssm_conv1d", "mixer.conv1d"},
    {"ssm_x", "mixer.x_proj"}, {"ssm_dt", "mixer.dt_proj"},  {"ssm_a", "mixer.A"},
    {"ssm_d", "mixer.D"},      {"ssm_out", "mixer.out_proj"}};
// RWKV 7, whose products of low rank are three tensors each.
constexpr GgufName kRwkv7Tensors[] = {{"attn_norm", "attn_norm"},
                                      {"attn_norm_2", "ffn_norm"},
                                      {"time_mix_lerp_fused.weight", "attn.x_x"},
                                      {"time_mix_k_k.weight", "attn.k_k"},
                                      {"time_mix_k_a.weight", "attn.k_a"},
                                      {"time_mix_r_k.weight", "attn.r_k"},
                                      {"time_mix_w0.weight", "attn.w_lora.lora.2.bias"},
                                      {"time_mix_w1.weight", "attn.w_lora.lora.0.weight"},
                                      {"time_mix_w2.weight", "attn.w_lora.lora.2.weight"},
                                      {"time_mix_a0.weight", "attn.a_lora.lora.2.bias"},
                                      {"time_mix_a1.weight", "attn.a_lora.lora.0.weight"},
                                      {"time_mix_a2.weight", "attn.a_lora.lora.2.weight"},
                                      {"time_mix_v0.weight", "attn.v_lora.lora.2.bias"},
                                      {"time_mix_v1.weight", "attn.v_lora.lora.0.weight"},
                                      {"time_mix_v2.weight", "attn.v_lora.lora.2.weight"},
                                      {"time_mix_g1.weight", "attn.g_lora.lora.0.weight"},
                                      {"time_mix_g2.weight", "attn.g_lora.lora.2.weight"},
                                      {"time_mix_receptance", "attn.r_proj"},
                                      {"time_mix_key", "attn.k_proj"},
                                      {"time_mix_value", "attn.v_proj"},
                                      {"time_mix_output", "attn.o_proj"},
                                      {"time_mix_ln", "attn.g_norm"},
                                      {"channel_mix_lerp_k.weight", "ffn.x_k"},
                                      {"channel_mix_key", "ffn.key"},
                                      {"channel_mix_value", "ffn.value"}};
constexpr GgufName kRwkv7Model[] = {{"token_embd.weight", "model.embeddings.weight"},
                                    {"token_embd_norm.weight", "model.layers.0.pre_norm.weight"},
                                    {"token_embd_norm.bias", "model.layers.0.pre_norm.bias"}};
constexpr GgufKey kRwkv7Keys[] = {{"wkv.head_size", "head_size"},
                                  {"attention.decay_lora_rank", "decay_low_rank_dim"},
                                  {"attention.iclr_lora_rank", "a_low_rank_dim"},
                                  {"attention.value_residual_mix_lora_rank", "v_low_rank_dim"},
                                  {"attention.gate_lora_rank", "gate_low_rank_dim"}};
constexpr GgufName kFinalNorm[] = {{"output_norm.weight", "model.final_layernorm.weight"}};

constexpr GgufKey kFalconH1Keys[] = {{"ssm.conv_kernel", "mamba_d_conv"},
                                     {"ssm.state_size", "mamba_d_state"},
                                     {"ssm.group_count", "mamba_n_groups"},
                                     {"ssm.time_step_rank", "mamba_n_heads"},
                                     {"ssm.inner_size", "inner_size"}};
constexpr GgufKey kJambaKeys[] = {
    {"ssm.conv_kernel", "mamba_d_conv"},     {"ssm.state_size", "mamba_d_state"},
    {"ssm.time_step_rank", "mamba_dt_rank"}, {"ssm.inner_size", "inner_size"},
    {"expert_count", "num_experts"},         {"expert_used_count", "num_experts_per_tok"}};
constexpr GgufKey kMambaKeys[] = {{"ssm.conv_kernel", "conv_kernel"},
                                  {"ssm.state_size", "state_size"},
                                  {"ssm.time_step_rank", "time_step_rank"},
                                  {"ssm.inner_size", "intermediate_size"}};

// Numbers of key heads by layer, of which those without any do not attend, become one number;
// empty: the file has one.
Result<std::vector<bool>> take_attending(const GgufFile& file, Json& config) {
  Json& heads = config["num_key_value_heads"];
  std::vector<bool> attends;
  if (!heads.is_array()) return attends;
  int64_t most = 0;
  for (const Json& count : heads) {
    attends.push_back(count != 0);
    most = std::max(most, count.get<int64_t>());
  }
  if (most <= 0) return file.error("no layer has heads of keys; fetch the file again");
  heads = most;
  return attends;
}

// Layers without heads of keys have a convolution.
Status read_lfm2_file(const GgufFile& file, Json& config) {
  FT_ASSIGN_OR_RETURN(const std::vector<bool> attends, take_attending(file, config));
  for (const bool each : attends) {
    config["layer_types"].push_back(each ? "full_attention" : "conv");
  }
  config["norm_eps"] = config["rms_norm_eps"];
  return {};
}

// What heads divide among them.
void take_head_dim(const char* heads, const char* head_dim, Json& config) {
  const auto count = config.value(heads, int64_t{0}),
             inner = config.value("inner_size", int64_t{0});
  if (count > 0) config[head_dim] = inner / count;
  config.erase("inner_size");
}

// Files say nothing of attention where there is none.
Status read_mamba2_file(const GgufFile&, Json& config) {
  take_head_dim("num_heads", "head_dim", config);
  config["layer_norm_epsilon"] = config["rms_norm_eps"];
  return {};
}

// Layers that do not attend have Mamba 2; mixtures may be missing, and then the shared expert is
// the MLP. Files of Bamba are of this kind, whose heads turn and whose scores are scaled as usual.
Status read_granite_hybrid_file(const GgufFile& file, Json& config) {
  take_head_dim("mamba_n_heads", "mamba_d_head", config);
  FT_ASSIGN_OR_RETURN(const std::vector<bool> attends, take_attending(file, config));
  for (const bool each : attends) {
    config["layer_types"].push_back(each ? "attention" : "mamba");
  }
  if (config["num_local_experts"] == 0) {
    config["shared_intermediate_size"] = config["intermediate_size"];
  }
  FT_ASSIGN_OR_RETURN(const auto turns, file.flag("granitehybrid.rope.scaling.finetuned"));
  if (turns.value_or(false)) config["position_embedding_type"] = "rope";
  if (!config.contains("attention_multiplier")) {
    config["attention_multiplier"] = 1 / std::sqrt(config["head_dim"].get<double>());
  }
  return {};
}

// Layers that neither attend nor have an MLP's width have Mamba 2. Those of a draft module, behind
// the model's, are left out.
Status read_nemotron_h_file(const GgufFile& file, Json& config) {
  take_head_dim("mamba_num_heads", "mamba_head_dim", config);
  FT_ASSIGN_OR_RETURN(const std::vector<bool> attends, take_attending(file, config));
  const Json inner = config["intermediate_size"];
  const auto modules = config.value("num_nextn_predict_layers", int64_t{0});
  const int64_t num_layers = config["num_hidden_layers"].get<int64_t>() - modules;
  const bool mixes = config.contains("moe_intermediate_size");
  int64_t widest = 1;
  Json types = Json::array();
  for (int64_t i = 0; i < num_layers; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool attending = at < attends.size() && attends[at];
    const int64_t width = inner.is_array() && at < inner.size() ? inner[at].get<int64_t>() : 0;
    widest = std::max(widest, width);
    types.push_back(attending ? "attention" : width == 0 ? "mamba" : mixes ? "moe" : "mlp");
  }
  config["layers_block_type"] = std::move(types);
  config["num_hidden_layers"] = num_layers;
  config["intermediate_size"] = widest;
  config["layer_norm_epsilon"] = config["rms_norm_eps"];
  return {};
}

// Files hold matrices that the model's multipliers are a part of.
Status read_falcon_h1_file(const GgufFile& file, Json& config) {
  config["mamba_d_ssm"] = config["inner_size"];
  take_head_dim("mamba_n_heads", "mamba_d_head", config);
  config["mamba_rms_norm"] = file.tensors().contains("blk.0.ssm_norm.weight");
  config["mamba_conv_bias"] = file.tensors().contains("blk.0.ssm_conv1d.bias");
  return {};
}

// Layers that have something, as the first of them and how many lie between two: all that folders
// can say.
Status take_period(const GgufFile& file, const std::vector<bool>& layers, const char* period,
                   const char* offset, Json& config) {
  const auto first = std::ranges::find(layers, true);
  const auto begin = first - layers.begin();
  auto step = std::ssize(layers);
  if (first != layers.end()) {
    const auto second = std::find(first + 1, layers.end(), true);
    if (second != layers.end()) step = second - first;
  }
  for (int64_t i = 0; i < std::ssize(layers); ++i) {
    if (layers[static_cast<size_t>(i)] == (i % step == begin)) continue;
    return file.error(
        "layers that attend or have experts do not follow at equal distances, which "
        "is not read; use the model's Hugging Face folder instead");
  }
  config[period] = step;
  config[offset] = begin;
  return {};
}

Status read_jamba_file(const GgufFile& file, Json& config) {
  FT_ASSIGN_OR_RETURN(std::vector<bool> attends, take_attending(file, config));
  const auto num_layers = config["num_hidden_layers"].get<size_t>();
  if (attends.size() != num_layers) attends.assign(num_layers, true);
  std::vector<bool> mixes;
  for (size_t i = 0; i < num_layers; ++i) {
    mixes.push_back(file.tensors().contains("blk." + std::to_string(i) + ".ffn_gate_inp.weight"));
  }
  FT_RETURN_IF_ERROR(take_period(file, attends, "attn_layer_period", "attn_layer_offset", config));
  if (std::ranges::find(mixes, true) == mixes.end()) {
    config["num_experts"] = 1;
  } else {
    FT_RETURN_IF_ERROR(
        take_period(file, mixes, "expert_layer_period", "expert_layer_offset", config));
  }
  config["mamba_expand"] = config.value("inner_size", int64_t{0}) /
                           std::max<int64_t>(config["hidden_size"].get<int64_t>(), 1);
  config.erase("inner_size");
  return {};
}

// Falcon's norm what states are made of.
Status read_mamba_file(const GgufFile& file, Json& config) {
  config["layer_norm_epsilon"] = config["rms_norm_eps"];
  config["use_conv_bias"] = file.tensors().contains("blk.0.ssm_conv1d.bias");
  FT_ASSIGN_OR_RETURN(const auto norms, file.flag("mamba.ssm.dt_b_c_rms"));
  if (!norms.value_or(false)) return {};
  config["architectures"] = Json::array({"FalconMambaForCausalLM"});
  config["model_type"] = "falcon_mamba";
  return {};
}

// No shape tells how many elements the heads have.
Status read_rwkv7_file(const GgufFile& file, Json& config) {
  if (config.contains("head_size")) return {};
  return file.error("'rwkv7.wkv.head_size' must be a number above 0; convert the model again");
}

// Newer files of mixtures have a name of their own.
constexpr GgufArchitecture nemotron_h(std::string_view name) {
  return {.name = name,
          .hf_class = "NemotronHForCausalLM",
          .model_type = "nemotron_h",
          .tensors = kMamba2Tensors,
          .model_tensors = kMamba2Model,
          .layers = "backbone.layers.",
          .keys = kNemotronHKeys,
          .fields = R"({"mlp_hidden_act": "relu2"})",
          .read = read_nemotron_h_file};
}

constexpr GgufArchitecture kRecurrentArchitectures[] = {
    {.name = "lfm2",
     .hf_class = "Lfm2ForCausalLM",
     .model_type = "lfm2",
     .tensors = kLfm2Tensors,
     .model_tensors = kLfm2Model,
     .keys = kLfm2Keys,
     .fields = R"({"block_auto_adjust_ff_dim": false})",
     .read = read_lfm2_file},
    {.name = "lfm2moe",
     .hf_class = "Lfm2MoeForCausalLM",
     .model_type = "lfm2_moe",
     .tensors = kLfm2Tensors,
     .model_tensors = kLfm2Model,
     .keys = kLfm2MoeKeys,
     .read = read_lfm2_file},
    {.name = "mamba2",
     .hf_class = "Mamba2ForCausalLM",
     .model_type = "mamba2",
     .tensors = kMamba2Tensors,
     .model_tensors = kMamba2Model,
     .layers = "backbone.layers.",
     .keys = kMamba2Keys,
     .fields = R"({"num_attention_heads": 1, "num_key_value_heads": 1, "intermediate_size": 1})",
     .read = read_mamba2_file},
    {.name = "granitehybrid",
     .hf_class = "GraniteMoeHybridForCausalLM",
     .model_type = "granitemoehybrid",
     .interleaves_heads = true,
     .tensors = kGraniteHybridTensors,
     .keys = kGraniteHybridKeys,
     .fields = R"({"num_local_experts": 0, "plain_matrices": true})",
     .read = read_granite_hybrid_file},
    nemotron_h("nemotron_h"),
    nemotron_h("nemotron_h_moe"),
    {.name = "falcon-h1",
     .hf_class = "FalconH1ForCausalLM",
     .model_type = "falcon_h1",
     .tensors = kFalconH1Tensors,
     .model_tensors = kFinalNorm,
     .keys = kFalconH1Keys,
     .fields = R"({"mamba_norm_before_gate": false})",
     .read = read_falcon_h1_file},
    {.name = "jamba",
     .hf_class = "JambaForCausalLM",
     .model_type = "jamba",
     .tensors = kJambaTensors,
     .model_tensors = kFinalNorm,
     .keys = kJambaKeys,
     .read = read_jamba_file},
    {.name = "mamba",
     .hf_class = "MambaForCausalLM",
     .model_type = "mamba",
     .tensors = kMambaTensors,
     .model_tensors = kMamba2Model,
     .layers = "backbone.layers.",
     .keys = kMambaKeys,
     .read = read_mamba_file},
    {.name = "rwkv7",
     .hf_class = "RWKV7ForCausalLM",
     .model_type = "rwkv7",
     .tensors = kRwkv7Tensors,
     .model_tensors = kRwkv7Model,
     .keys = kRwkv7Keys,
     .fields = R"({"hidden_act": "sqrelu"})",
     .read = read_rwkv7_file},
};

}  // namespace

std::span<const GgufArchitecture> recurrent_gguf_architectures() { return kRecurrentArchitectures; }

}  // namespace foretoken
