#include "gguf/recurrent_architectures.h"

#include <gtest/gtest.h>

#include <utility>

namespace foretoken {
namespace {

TEST(RecurrentArchitectures, NamesOfShortConvolutionsAndBack) {
  const GgufArchitecture& lfm2 = recurrent_gguf_architectures()[0];
  ASSERT_EQ(lfm2.name, "lfm2");
  for (const auto& [theirs, ours] :
       {std::pair("blk.0.attn_norm.weight", "model.layers.0.operator_norm.weight"),
        std::pair("blk.0.ffn_norm.weight", "model.layers.0.ffn_norm.weight"),
        std::pair("blk.0.shortconv.conv.weight", "model.layers.0.conv.conv.weight"),
        std::pair("blk.2.attn_q_norm.weight", "model.layers.2.self_attn.q_layernorm.weight"),
        std::pair("blk.2.ffn_down_exps.weight", "model.layers.2.feed_forward.experts.w2.weight"),
        std::pair("blk.2.exp_probs_b.bias", "model.layers.2.feed_forward.expert_bias"),
        std::pair("output_norm.weight", "model.embedding_norm.weight")}) {
    EXPECT_EQ(hf_tensor_name(lfm2, theirs), ours);
    EXPECT_EQ(gguf_tensor_name(lfm2, ours), theirs);
  }
  EXPECT_EQ(hf_tensor_name(lfm2, "token_embd_norm.weight"), "model.embedding_norm.weight");
}

}  // namespace
}  // namespace foretoken
