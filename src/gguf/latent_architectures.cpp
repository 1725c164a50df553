#include "gguf/latent_architectures.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gguf/container/gguf_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr auto kDeepseekTensors =
    joined_rows(kLatentTensors,
                std::to_array<GgufName>({{"nextn.eh_proj", "eh_proj"},
                                         {"nextn.enorm", "enorm"},
                                         {"nextn.hnorm", "hnorm"},
                                         {"nextn.embed_tokens", "embed_tokens"},
                                         {"nextn.shared_head_norm", "shared_head.norm"},
                                         {"nextn.shared_head_head", "shared_head.head"},
                                         {"ffn_gate_inp", "mlp.gate"},
                                         {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
                                         {"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"},
                                         {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                         {"ffn_up_exps", "mlp.experts.up_proj"},
                                         {"ffn_down_exps", "mlp.experts.down_proj"},
                                         {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                                         {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                                         {"ffn_down_shexp", "mlp.shared_experts.down_proj"}}));
// With those of an indexer.
constexpr auto kIndexedTensors = joined_rows(
    kDeepseekTensors, std::to_array<GgufName>({{"indexer.attn_k", "self_attn.indexer.wk"},
                                               {"indexer.attn_q_b", "self_attn.indexer.wq_b"},
                                               {"indexer.proj", "self_attn.indexer.weights_proj"},
                                               {"indexer.k_norm", "self_attn.indexer.k_norm"}}));
constexpr auto kDeepseekKeys =
    joined_rows(joined_rows(kLatentKeys, kGroupedExpertKeys),
                std::to_array<GgufKey>({{"expert_gating_func", "gating"},
                                        {"attention.temperature_scale", "llama_4_scaling_beta"}}));
constexpr auto kIndexedKeys = joined_rows(
    kDeepseekKeys, std::to_array<GgufKey>({{"attention.indexer.head_count", "index_n_heads"},
                                           {"attention.indexer.key_length", "index_head_dim"},
                                           {"attention.indexer.top_k", "index_topk"}}));

// With what Hy4 has beside it: gates and sinks of attention, and streams.
constexpr auto kHyV4Tensors =
    joined_rows(kIndexedTensors,
                std::to_array<GgufName>({{"attn_gate", "self_attn.linear_gate"},
                                         {"attn_sinks.weight", "self_attn.learnable_sink_param"},
                                         {"hc_attn_fn.weight", "hc_attn_layer.hc_pre.hc_fn"},
                                         {"hc_attn_base.weight", "hc_attn_layer.hc_pre.hc_base"},
                                         {"hc_attn_scale.weight", "hc_attn_layer.hc_pre.hc_scale"},
                                         {"hc_ffn_fn.weight", "hc_mlp_layer.hc_pre.hc_fn"},
                                         {"hc_ffn_base.weight", "hc_mlp_layer.hc_pre.hc_base"},
                                         {"hc_ffn_scale.weight", "hc_mlp_layer.hc_pre.hc_scale"}}));
constexpr GgufName kHyV4ModelTensors[] = {
    {"output_hc_fn.weight", "model.hc_head.hc_head_fn"},
    {"output_hc_base.weight", "model.hc_head.hc_head_base"},
    {"output_hc_scale.weight", "model.hc_head.hc_head_scale"}};
constexpr auto kHyV4Keys = joined_rows(
    kIndexedKeys, std::to_array<GgufKey>({{"hyper_connection.count", "hc_mult"},
                                          {"hyper_connection.epsilon", "hc_eps"},
                                          {"hyper_connection.magnitude", "hc_magnitude"}}));

constexpr int64_t kSigmoidGates = 2;  // expert_gating_func

// Mistral's mixtures, whose queries grow with their positions, are those of V2 with weights that
// add up to 1.
void name_deepseek(Json& config) {
  const bool is_v2 = config.value("gating", int64_t{1}) != kSigmoidGates;
  const bool grows = config.contains("llama_4_scaling_beta");
  config["architectures"] = Json::array({grows   ? "Mistral4ForCausalLM"
                                         : is_v2 ? "DeepseekV2ForCausalLM"
                                                 : "DeepseekV3ForCausalLM"});
  config["model_type"] = grows ? "mistral4" : is_v2 ? "deepseek_v2" : "deepseek_v3";
  if (grows) return;
  config["topk_method"] = !is_v2                       ? "noaux_tc"
                          : config.contains("n_group") ? "group_limited_greedy"
                                                       : "greedy";
}

// V2's routers are the softmax of their logits, V3's the sigmoid, whose groups are chosen
// otherwise.
void complete_deepseek(Json& config) {
  const int64_t heads = config.value("qk_head_dim", config.value("head_dim", int64_t{0}));
  config["qk_nope_head_dim"] = heads - config.value("qk_rope_head_dim", int64_t{0});
  if (!config.contains("v_head_dim")) config["v_head_dim"] = config["value_length"];
  const auto modules = config.value("num_nextn_predict_layers", int64_t{0});
  config["num_hidden_layers"] = config["num_hidden_layers"].get<int64_t>() - modules;
  name_deepseek(config);
  for (const auto& [name, value] :
       {std::pair("first_k_dense_replace", 0), std::pair("n_shared_experts", 0),
        std::pair("n_group", 1), std::pair("topk_group", 1)}) {
    if (!config.contains(name)) config[name] = value;
  }
  if (!config.contains("norm_topk_prob")) config["norm_topk_prob"] = false;
  config.erase("gating");
  config.erase("value_length");
}

// Files of GLM 4.7 Flash do not say what routers give; only those of sigmoids are corrected.
Status read_deepseek_file(const GgufFile& file, Json& config) {
  const auto& tensors = file.tensors();
  const bool corrects = std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.first.find(".exp_probs_b.") != std::string::npos;
  });
  if (corrects && !config.contains("gating")) config["gating"] = kSigmoidGates;
  complete_deepseek(config);
  return {};
}

// Layers without an indexer attend to what the one before them has chosen.
Status read_indexed_file(const GgufFile& file, Json& config) {
  FT_RETURN_IF_ERROR(read_deepseek_file(file, config));
  FT_ASSIGN_OR_RETURN(const auto name, file.text("general.architecture"));
  const bool is_glm = name == "glm-dsa";
  config["architectures"] =
      Json::array({is_glm ? "GlmMoeDsaForCausalLM" : "DeepseekV32ForCausalLM"});
  config["model_type"] = is_glm ? "glm_moe_dsa" : "deepseek_v32";
  config["topk_method"] = "noaux_tc";
  config["scoring_func"] = "sigmoid";
  Json types = Json::array();
  for (int64_t i = 0; i < config["num_hidden_layers"].get<int64_t>(); ++i) {
    const std::string key = "blk." + std::to_string(i) + ".indexer.attn_k.weight";
    types.push_back(file.tensors().contains(key) ? "full" : "shared");
  }
  config["indexer_types"] = std::move(types);
  return {};
}

// Files have no draft modules, and a limit of gates for each layer, all alike; none where gates are
// not cut.
Status read_hy_v4_file(const GgufFile& file, Json& config) {
  FT_RETURN_IF_ERROR(read_indexed_file(file, config));
  config.erase("num_nextn_predict_layers");
  config["architectures"] = Json::array({"HYV4ForCausalLM"});
  config["model_type"] = "hy_v4";
  FT_ASSIGN_OR_RETURN(const auto name, file.text("general.architecture"));
  config["swiglu_limit"] = 0.0;
  const std::string key = name.value_or("hy_v4") + ".swiglu_clamp_exp";
  if (file.find(key) == nullptr) return {};
  FT_ASSIGN_OR_RETURN(const std::vector<double> limits, file.numbers(key));
  if (!limits.empty()) config["swiglu_limit"] = limits.front();
  return {};
}

constexpr GgufArchitecture kLatentArchitectures[] = {
    {.name = "deepseek2",
     .hf_class = "DeepseekV3ForCausalLM",
     .model_type = "deepseek_v3",
     .tensors = kDeepseekTensors,
     .keys = kDeepseekKeys,
     .read = read_deepseek_file},
    // Files of llama.cpp's converter do not say how queries grow, for which there is one model.
    {.name = "mistral4",
     .hf_class = "Mistral4ForCausalLM",
     .model_type = "mistral4",
     .tensors = kDeepseekTensors,
     .keys = kDeepseekKeys,
     .fields = R"({"llama_4_scaling_beta": 0.1})",
     .complete = complete_deepseek},
    {.name = "deepseek32",
     .hf_class = "DeepseekV32ForCausalLM",
     .model_type = "deepseek_v32",
     .tensors = kIndexedTensors,
     .keys = kIndexedKeys,
     .read = read_indexed_file},
    // Files do not say that the pairs of an indexer's heads lie side by side.
    {.name = "glm-dsa",
     .hf_class = "GlmMoeDsaForCausalLM",
     .model_type = "glm_moe_dsa",
     .tensors = kIndexedTensors,
     .keys = kIndexedKeys,
     .fields = R"({"indexer_rope_interleave": true})",
     .read = read_indexed_file},
    {.name = "hy_v4",
     .hf_class = "HYV4ForCausalLM",
     .model_type = "hy_v4",
     .tensors = kHyV4Tensors,
     .model_tensors = kHyV4ModelTensors,
     .keys = kHyV4Keys,
     .read = read_hy_v4_file},
    {.name = "hyv4",
     .hf_class = "HYV4ForCausalLM",
     .model_type = "hy_v4",
     .tensors = kHyV4Tensors,
     .model_tensors = kHyV4ModelTensors,
     .keys = kHyV4Keys,
     .read = read_hy_v4_file},
};

}  // namespace

std::span<const GgufArchitecture> latent_gguf_architectures() { return kLatentArchitectures; }

}  // namespace foretoken
