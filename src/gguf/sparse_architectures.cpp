#include "gguf/sparse_architectures.h"

#include <string>
#include <utility>
#include <vector>

#include "gguf/container/gguf_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr GgufName kMinimaxM3Tensors[] = {
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"exp_probs_b.bias", "block_sparse_moe.e_score_correction_bias"},
    {"ffn_gate_exps", "block_sparse_moe.experts.w1"},
    {"ffn_up_exps", "block_sparse_moe.experts.w3"},
    {"ffn_down_exps", "block_sparse_moe.experts.w2"},
    {"ffn_gate_shexp", "block_sparse_moe.shared_experts.gate_proj"},
    {"ffn_up_shexp", "block_sparse_moe.shared_experts.up_proj"},
    {"ffn_down_shexp", "block_sparse_moe.shared_experts.down_proj"},
    {"indexer.q_proj", "self_attn.index_q_proj"},
    {"indexer.k_proj", "self_attn.index_k_proj"},
    {"indexer.q_norm", "self_attn.index_q_norm"},
    {"indexer.k_norm", "self_attn.index_k_norm"}};
constexpr GgufKey kMinimaxM3Keys[] = {{"expert_count", "num_local_experts"},
                                      {"expert_used_count", "num_experts_per_tok"},
                                      {"expert_shared_count", "n_shared_experts"},
                                      {"expert_weights_scale", "routed_scaling_factor"},
                                      {"rope.dimension_count", "rotary_dim"}};

// Under the names of published folders, whose layers have no "model." before them.
constexpr GgufName kDeepseekV4ModelTensors[] = {
    {"token_embd.weight", "embed.weight"},     {"output_norm.weight", "norm.weight"},
    {"output.weight", "head.weight"},          {"output_hc_fn.weight", "hc_head_fn"},
    {"output_hc_base.weight", "hc_head_base"}, {"output_hc_scale.weight", "hc_head_scale"}};
constexpr GgufName kDeepseekV4Tensors[] = {
    {"attn_norm", "attn_norm"},
    {"attn_sinks.weight", "attn.attn_sink"},
    {"attn_q_a", "attn.wq_a"},
    {"attn_q_a_norm", "attn.q_norm"},
    {"attn_q_b", "attn.wq_b"},
    {"attn_kv", "attn.wkv"},
    {"attn_kv_a_norm", "attn.kv_norm"},
    {"attn_output_a", "attn.wo_a"},
    {"attn_output_b", "attn.wo_b"},
    {"attn_compressor_kv", "attn.compressor.wkv"},
    {"attn_compressor_gate", "attn.compressor.wgate"},
    {"attn_compressor_ape.weight", "attn.compressor.ape"},
    {"attn_compressor_norm", "attn.compressor.norm"},
    {"indexer.proj", "attn.indexer.weights_proj"},
    {"indexer.attn_q_b", "attn.indexer.wq_b"},
    {"indexer_compressor_kv", "attn.indexer.compressor.wkv"},
    {"indexer_compressor_gate", "attn.indexer.compressor.wgate"},
    {"indexer_compressor_ape.weight", "attn.indexer.compressor.ape"},
    {"indexer_compressor_norm", "attn.indexer.compressor.norm"},
    {"hc_attn_fn.weight", "hc_attn_fn"},
    {"hc_attn_base.weight", "hc_attn_base"},
    {"hc_attn_scale.weight", "hc_attn_scale"},
    {"hc_ffn_fn.weight", "hc_ffn_fn"},
    {"hc_ffn_base.weight", "hc_ffn_base"},
    {"hc_ffn_scale.weight", "hc_ffn_scale"},
    {"ffn_norm", "ffn_norm"},
    {"ffn_gate_inp", "ffn.gate"},
    {"ffn_gate_tid2eid.weight", "ffn.gate.tid2eid"},
    {"exp_probs_b.bias", "ffn.gate.bias"},
    {"ffn_gate_exps", "ffn.experts.w1"},
    {"ffn_up_exps", "ffn.experts.w3"},
    {"ffn_down_exps", "ffn.experts.w2"},
    {"ffn_gate_shexp", "ffn.shared_experts.w1"},
    {"ffn_up_shexp", "ffn.shared_experts.w3"},
    {"ffn_down_shexp", "ffn.shared_experts.w2"}};
// Both projections of a module are one matrix, and its streams may end as the model's do.
constexpr GgufName kDeepseekV4ModuleTensors[] = {
    {"nextn.eh_proj.weight", "eh_proj.weight"},
    {"nextn.enorm.weight", "enorm.weight"},
    {"nextn.hnorm.weight", "hnorm.weight"},
    {"nextn.shared_head_norm.weight", "norm.weight"},
    {"nextn.embed_tokens.weight", "embed_tokens.weight"},
    {"nextn.shared_head_head.weight", "shared_head.head.weight"}};
constexpr GgufKey kDeepseekV4Keys[] = {
    {"rope.dimension_count", "qk_rope_head_dim"},
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.output_lora_rank", "o_lora_rank"},
    {"attention.output_group_count", "o_groups"},
    {"attention.compress_rope_freq_base", "compress_rope_theta"},
    {"attention.indexer.head_count", "index_n_heads"},
    {"attention.indexer.key_length", "index_head_dim"},
    {"attention.indexer.top_k", "index_topk"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_count", "n_routed_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"expert_weights_norm", "norm_topk_prob", false, true},
    {"hyper_connection.count", "hc_mult"},
    {"hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"},
    {"hyper_connection.epsilon", "hc_eps"},
    {"nextn_predict_layers", "nextn"}};

std::string tensor_of_layer(int64_t layer, const char* part) {
  return "blk." + std::to_string(layer) + "." + part;
}

// Which layers have a mixture, and which choose blocks, their tensors say.
Status read_minimax_m3_file(const GgufFile& file, Json& config) {
  const auto& tensors = file.tensors();
  Json mixtures = Json::array(), chooses = Json::array();
  for (int64_t i = 0; i < config["num_hidden_layers"].get<int64_t>(); ++i) {
    mixtures.push_back(tensors.contains(tensor_of_layer(i, "ffn_gate_inp.weight")) ? 1 : 0);
    chooses.push_back(tensors.contains(tensor_of_layer(i, "indexer.q_proj.weight")) ? 1 : 0);
    const auto dense = tensors.find(tensor_of_layer(i, "ffn_gate.weight"));
    if (dense == tensors.end() || dense->second.shape.empty()) continue;
    config["dense_intermediate_size"] = dense->second.shape[0];
  }
  const std::string front = "minimax-m3.";
  FT_ASSIGN_OR_RETURN(const auto inner, file.integer(front + "expert_feed_forward_length"));
  if (inner) config["intermediate_size"] = *inner;
  config["moe_layer_freq"] = std::move(mixtures);
  Json sparse = {{"sparse_attention_freq", std::move(chooses)}};
  for (const auto& [key, field] :
       {std::pair("head_count", "sparse_num_index_heads"),
        std::pair("key_length", "sparse_index_dim"), std::pair("top_k", "sparse_topk_blocks"),
        std::pair("block_size", "sparse_block_size"),
        std::pair("local_blocks", "sparse_local_block")}) {
    FT_ASSIGN_OR_RETURN(const auto value, file.integer(front + "attention.indexer." + key));
    if (value) sparse[field] = *value;
  }
  config["sparse_attention_config"] = std::move(sparse);
  return {};
}

// Lengths of entries, of which there may be more than layers; a limit of gates for each layer, all
// alike. Files that name draft modules need not have them.
Status read_deepseek_v4_file(const GgufFile& file, Json& config) {
  const std::string front = "deepseek4.";
  const int64_t modules = config.value("nextn", int64_t{0});
  const int64_t layers = config["num_hidden_layers"].get<int64_t>() - modules;
  const bool has_them =
      modules > 0 && file.tensors().contains(tensor_of_layer(layers, "nextn.eh_proj.weight"));
  if (has_them) config["num_hidden_layers"] = layers;
  config.erase("nextn");
  config["num_nextn_predict_layers"] = has_them ? modules : 0;
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> ratios,
                      file.integers(front + "attention.compress_ratios"));
  config["compress_ratios"] = ratios;
  FT_ASSIGN_OR_RETURN(const auto hashed, file.integer(front + "hash_layer_count"));
  config["num_hash_layers"] = hashed.value_or(0);
  const std::string limit = front + "swiglu_clamp_exp";
  if (file.find(limit) == nullptr) return {};
  const Result<std::vector<double>> each = file.numbers(limit);
  if (each.ok() && !each.value().empty()) {
    config["swiglu_limit"] = each.value().front();
    return {};
  }
  FT_ASSIGN_OR_RETURN(const auto one, file.number(limit));
  if (one) config["swiglu_limit"] = *one;
  return {};
}

constexpr GgufArchitecture kSparseArchitectures[] = {
    // Files do not say the limits of gates, for which there is one model.
    {.name = "minimax-m3",
     .hf_class = "MiniMaxM3ForCausalLM",
     .model_type = "minimax_m3",
     .whole_norms = true,
     .tensors = kMinimaxM3Tensors,
     .keys = kMinimaxM3Keys,
     .fields = R"({"swiglu_limit": 7.0, "swiglu_alpha": 1.702})",
     .read = read_minimax_m3_file},
    {.name = "deepseek4",
     .hf_class = "DeepseekV4ForCausalLM",
     .model_type = "deepseek_v4",
     .tensors = kDeepseekV4Tensors,
     .model_tensors = kDeepseekV4ModelTensors,
     .layers = "layers.",
     .modules = "mtp.",
     .module_tensors = kDeepseekV4ModuleTensors,
     .keys = kDeepseekV4Keys,
     .read = read_deepseek_v4_file},
};

}  // namespace

std::span<const GgufArchitecture> sparse_gguf_architectures() { return kSparseArchitectures; }

}  // namespace foretoken
