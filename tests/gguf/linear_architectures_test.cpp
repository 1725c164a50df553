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
