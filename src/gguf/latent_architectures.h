#pragma once
#include <algorithm>
#include <array>
#include <span>

#include "gguf/hf_names.h"

namespace foretoken {

// The rows of two lists, as of names (GgufArchitecture::tensors) or keys.
template <class Row, size_t kFirst, size_t kSecond>
constexpr std::array<Row, kFirst + kSecond> joined_rows(const std::array<Row, kFirst>& first,
                                                        const std::array<Row, kSecond>& second) {
  std::array<Row, kFirst + kSecond> all{};
  std::copy(first.begin(), first.end(), all.begin());
  std::copy(second.begin(), second.end(), all.begin() + kFirst);
  return all;
}

// The tensors and sizes of DeepSeek's latent attention, whatever family has it. `value_length` is
// no field of a folder: who takes the keys erases it.
inline constexpr auto kLatentTensors =
    std::to_array<GgufName>({{"attn_q_a", "self_attn.q_a_proj"},
                             {"attn_q_a_norm", "self_attn.q_a_layernorm"},
                             {"attn_q_b", "self_attn.q_b_proj"},
                             {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
                             {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
                             {"attn_kv_b", "self_attn.kv_b_proj"},
                             {"attn_k_b", "self_attn.k_b_proj"},
                             {"attn_v_b", "self_attn.v_b_proj"}});
inline constexpr auto kLatentKeys =
    std::to_array<GgufKey>({{"attention.q_lora_rank", "q_lora_rank"},
                            {"attention.kv_lora_rank", "kv_lora_rank"},
                            {"rope.dimension_count", "qk_rope_head_dim"},
                            {"attention.key_length_mla", "qk_head_dim"},
                            {"attention.value_length", "value_length"},
                            {"attention.value_length_mla", "v_head_dim"}});

// The sizes of mixtures whose experts are grouped, as of GLM 4.5 and DeepSeek.
inline constexpr auto kGroupedExpertKeys =
    std::to_array<GgufKey>({{"leading_dense_block_count", "first_k_dense_replace"},
                            {"expert_count", "n_routed_experts"},
                            {"expert_used_count", "num_experts_per_tok"},
                            {"expert_shared_count", "n_shared_experts"},
                            {"expert_feed_forward_length", "moe_intermediate_size"},
                            {"expert_weights_scale", "routed_scaling_factor"},
                            {"expert_weights_norm", "norm_topk_prob", false, true},
                            {"expert_group_count", "n_group"},
                            {"expert_group_used_count", "topk_group"},
                            {"nextn_predict_layers", "num_nextn_predict_layers"}});

// Part of gguf_architectures: models with latent attention, of DeepSeek V2 and V3 and their kin
// and, with indexers, of DeepSeek V3.2 and GLM 5.
std::span<const GgufArchitecture> latent_gguf_architectures();

}  // namespace foretoken
