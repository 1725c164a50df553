#include "gguf/early_architectures.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

namespace foretoken {
namespace {

const GgufArchitecture& early(std::string_view name) {
  for (const GgufArchitecture& architecture : early_gguf_architectures()) {
    if (architecture.name == name) return architecture;
  }
  ADD_FAILURE() << name;
  return early_gguf_architectures()[0];
}

TEST(EarlyArchitectures, ArePartOfTheWhole) {
  std::set<std::string_view> names;
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    EXPECT_TRUE(names.insert(architecture.name).second) << architecture.name;
  }
  for (const GgufArchitecture& architecture : early_gguf_architectures()) {
    EXPECT_TRUE(names.contains(architecture.name)) << architecture.name;
  }
}

TEST(EarlyArchitectures, NamesOfTheirOwnAndBack) {
  for (const auto& [family, theirs, ours] :
       {std::tuple("phi2", "blk.1.ffn_up.bias", "model.layers.1.mlp.fc1.bias"),
        std::tuple("phi2", "output_norm.bias", "model.final_layernorm.bias"),
        std::tuple("starcoder", "blk.0.attn_qkv.weight", "transformer.h.0.attn.c_attn.weight"),
        std::tuple("exaone", "blk.2.ffn_gate.weight", "transformer.h.2.mlp.c_fc_0.weight"),
        std::tuple("internlm2", "blk.2.ffn_norm.weight", "model.layers.2.ffn_norm.weight"),
        std::tuple("internlm2", "blk.2.attn_q.weight", "model.layers.2.attention.q_proj.weight"),
        std::tuple("chatglm", "output.weight", "transformer.output_layer.weight"),
        std::tuple("chatglm", "blk.3.attn_qkv.bias",
                   "transformer.encoder.layers.3.self_attention.query_key_value.bias"),
        std::tuple("gptneox", "output.weight", "embed_out.weight")}) {
    EXPECT_EQ(hf_tensor_name(early(family), theirs), ours);
    EXPECT_EQ(gguf_tensor_name(early(family), ours), theirs);
  }
}

}  // namespace
}  // namespace foretoken
