#include "gguf/mixture_architectures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

namespace foretoken {
namespace {

const GgufArchitecture& mixture(std::string_view name) {
  for (const GgufArchitecture& architecture : mixture_gguf_architectures()) {
    if (architecture.name == name) return architecture;
  }
  ADD_FAILURE() << name;
  return mixture_gguf_architectures()[0];
}

TEST(MixtureArchitectures, ArePartOfTheWhole) {
  for (const GgufArchitecture& architecture : mixture_gguf_architectures()) {
    const auto all = gguf_architectures();
    EXPECT_EQ(std::count_if(all.begin(), all.end(),
                            [&](const auto& other) { return other.name == architecture.name; }),
              1)
        << architecture.name;
  }
}

TEST(MixtureArchitectures, NamesOfTheirOwnAndBack) {
  for (const auto& [family, theirs, ours] :
       {std::tuple("glm4moe", "blk.3.ffn_gate_exps.weight",
                   "model.layers.3.mlp.experts.gate_proj.weight"),
        std::tuple("glm4moe", "blk.3.exp_probs_b.bias",
                   "model.layers.3.mlp.gate.e_score_correction_bias"),
        std::tuple("glm4moe", "blk.46.nextn.shared_head_norm.weight",
                   "model.layers.46.shared_head.norm.weight"),
        std::tuple("minimax-m2", "blk.0.ffn_down_exps.weight",
                   "model.layers.0.block_sparse_moe.experts.w2.weight"),
        std::tuple("hunyuan-moe", "blk.0.attn_q_norm.weight",
                   "model.layers.0.self_attn.query_layernorm.weight"),
        std::tuple("afmoe", "blk.1.ffn_norm.weight", "model.layers.1.pre_mlp_layernorm.weight"),
        std::tuple("laguna", "blk.1.exp_probs_b.bias",
                   "model.layers.1.mlp.experts.e_score_correction_bias"),
        std::tuple("step35", "blk.1.ffn_gate_exps.weight", "model.layers.1.moe.gate_proj.weight"),
        std::tuple("llama4", "blk.1.ffn_gate.weight",
                   "model.layers.1.feed_forward.gate_proj.weight")}) {
    EXPECT_EQ(hf_tensor_name(mixture(family), theirs), ours);
    EXPECT_EQ(gguf_tensor_name(mixture(family), ours), theirs);
  }
}

TEST(MixtureArchitectures, LayersOfMtpModulesAreNotTheModels) {
  nlohmann::json config = {{"num_hidden_layers", 47}, {"num_nextn_predict_layers", 1}};
  mixture("glm4moe").complete(config);
  EXPECT_EQ(config["num_hidden_layers"], 46);
}

TEST(MixtureArchitectures, Llama4sWidthsTradePlaces) {
  nlohmann::json config = {
      {"intermediate_size", 16384}, {"moe_intermediate_size", 8192}, {"num_local_experts", 128}};
  mixture("llama4").complete(config);
  EXPECT_EQ(config["intermediate_size"], 8192);
  EXPECT_EQ(config["intermediate_size_mlp"], 16384);
  EXPECT_EQ(config["use_qk_norm"], false);
}

}  // namespace
}  // namespace foretoken
