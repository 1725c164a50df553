#include "gguf/linear_architectures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

namespace foretoken {
namespace {

const GgufArchitecture& linear(std::string_view name) {
  for (const GgufArchitecture& architecture : linear_gguf_architectures()) {
    if (architecture.name == name) return architecture;
  }
  ADD_FAILURE() << name;
  return linear_gguf_architectures()[0];
}

TEST(LinearArchitectures, ArePartOfTheWhole) {
  for (const GgufArchitecture& architecture : linear_gguf_architectures()) {
    const auto all = gguf_architectures();
    EXPECT_EQ(std::count_if(all.begin(), all.end(),
                            [&](const auto& other) { return other.name == architecture.name; }),
              1)
        << architecture.name;
  }
}

TEST(LinearArchitectures, NamesOfTheirOwnAndBack) {
  for (const auto& [family, theirs, ours] :
       {std::tuple("qwen3next", "blk.3.attn_qkv.weight",
                   "model.layers.3.linear_attn.in_proj_qkv.weight"),
        std::tuple("qwen3next", "blk.3.ssm_a", "model.layers.3.linear_attn.A"),
        std::tuple("qwen35", "blk.0.ssm_dt.bias", "model.layers.0.linear_attn.dt_bias"),
        std::tuple("qwen35", "blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"),
        std::tuple("qwen35moe", "blk.0.ffn_gate_shexp.weight",
                   "model.layers.0.mlp.shared_expert.gate_proj.weight")}) {
    EXPECT_EQ(hf_tensor_name(linear(family), theirs), ours);
    EXPECT_EQ(gguf_tensor_name(linear(family), ours), theirs);
  }
}

// Folders have the module of Qwen's models outside of the layers.
TEST(LinearArchitectures, ModulesStandBehindTheLayers) {
  for (const auto& [theirs, ours] :
       {std::pair("blk.48.nextn.eh_proj.weight", "mtp.fc.weight"),
        std::pair("blk.48.nextn.hnorm.weight", "mtp.pre_fc_norm_hidden.weight"),
        std::pair("blk.48.nextn.shared_head_norm.weight", "mtp.norm.weight"),
        std::pair("blk.48.attn_q.weight", "mtp.layers.0.self_attn.q_proj.weight"),
        std::pair("blk.49.post_attention_norm.weight",
                  "mtp.layers.1.post_attention_layernorm.weight"),
        std::pair("blk.48.nextn.new.weight", "mtp.layers.0.nextn.new.weight"),
        std::pair("blk.47.attn_q.weight", "model.layers.47.self_attn.q_proj.weight"),
        std::pair("output_norm.weight", "model.norm.weight")}) {
    EXPECT_EQ(hf_tensor_name(linear("qwen35"), theirs, 48), ours);
  }
  EXPECT_EQ(hf_tensor_name(linear("kimi-linear"), "blk.48.attn_q.weight", 48),
            "model.layers.48.self_attn.q_proj.weight");
}

TEST(LinearArchitectures, LayersOfModulesAreToldByTheirNumbers) {
  EXPECT_EQ(layer_of_tensor("blk.48.nextn.eh_proj.weight"), 48);
  EXPECT_EQ(layer_of_tensor("blk.0.ssm_a"), 0);
  EXPECT_EQ(layer_of_tensor("output_norm.weight"), -1);
  EXPECT_EQ(layer_of_tensor("blk.x.attn_q.weight"), -1);
  EXPECT_EQ(layer_of_tensor("blk.7"), -1);
  EXPECT_TRUE(reads_modules(linear("qwen35")));
  EXPECT_FALSE(reads_modules(linear("kimi-linear")));
}

TEST(LinearArchitectures, KimiLinearsOwnNames) {
  for (const auto& [theirs, ours] :
       {std::pair("blk.0.ssm_conv1d_q.weight", "model.layers.0.self_attn.q_conv1d.weight"),
        std::pair("blk.0.ssm_a", "model.layers.0.self_attn.A"),
        std::pair("blk.0.ssm_norm.weight", "model.layers.0.self_attn.o_norm.weight"),
        std::pair("blk.3.attn_k_b.weight", "model.layers.3.self_attn.k_b_proj.weight"),
        std::pair("blk.3.ffn_up_exps.weight",
                  "model.layers.3.block_sparse_moe.experts.w3.weight")}) {
    EXPECT_EQ(hf_tensor_name(linear("kimi-linear"), theirs), ours);
    EXPECT_EQ(gguf_tensor_name(linear("kimi-linear"), ours), theirs);
  }
}

TEST(LinearArchitectures, SizesFollowFromOthers) {
  nlohmann::json config = {{"num_hidden_layers", 49},
                           {"num_nextn_predict_layers", 1},
                           {"linear_num_value_heads", 32},
                           {"inner_size", 4096}};
  linear("qwen35").complete(config);
  EXPECT_EQ(config["num_hidden_layers"], 48);
  EXPECT_EQ(config["linear_value_head_dim"], 128);
  EXPECT_FALSE(config.contains("inner_size"));
}

}  // namespace
}  // namespace foretoken
