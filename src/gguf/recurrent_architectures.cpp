#include "gguf/recurrent_architectures.h"

#include <algorithm>
#include <cstdint>

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

// Layers without heads of keys have a convolution.
Status read_lfm2_file(const GgufFile& file, Json& config) {
  Json& heads = config["num_key_value_heads"];
  if (heads.is_array()) {
    Json types = Json::array();
    int64_t most = 0;
    for (const Json& count : heads) {
      types.push_back(count == 0 ? "conv" : "full_attention");
      most = std::max(most, count.get<int64_t>());
    }
    if (most <= 0) return file.error("no layer has heads of keys; fetch the file again");
    config["layer_types"] = std::move(types);
    heads = most;
  }
  config["norm_eps"] = config["rms_norm_eps"];
  return {};
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
};

}  // namespace

std::span<const GgufArchitecture> recurrent_gguf_architectures() { return kRecurrentArchitectures; }

}  // namespace foretoken
