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

const GgufArchitecture& recurrent_row(std::string_view name) {
  for (const GgufArchitecture& row : recurrent_gguf_architectures()) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << name;
  return recurrent_gguf_architectures()[0];
}

TEST(RecurrentArchitectures, NamesOfStateSpacesAndBack) {
  struct Pair {
    const char* file;
    const char* theirs;
    const char* ours;
  };
  for (const Pair& pair :
       {Pair{"mamba", "blk.1.ssm_x.weight", "backbone.layers.1.mixer.x_proj.weight"},
        Pair{"mamba", "blk.1.ssm_dt.bias", "backbone.layers.1.mixer.dt_proj.bias"},
        Pair{"mamba", "blk.1.ssm_a", "backbone.layers.1.mixer.A"},
        Pair{"jamba", "blk.0.ssm_b_norm.weight", "model.layers.0.mamba.b_layernorm.weight"},
        Pair{"jamba", "blk.0.ffn_norm.weight", "model.layers.0.pre_ff_layernorm.weight"},
        Pair{"jamba", "blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"},
        Pair{"jamba", "output_norm.weight", "model.final_layernorm.weight"},
        Pair{"falcon-h1", "blk.0.ssm_dt.bias", "model.layers.0.mamba.dt_bias"},
        Pair{"falcon-h1", "blk.0.ffn_gate.weight", "model.layers.0.feed_forward.gate_proj.weight"},
        Pair{"rwkv7", "blk.3.attn_norm_2.bias", "model.layers.3.ffn_norm.bias"},
        Pair{"rwkv7", "blk.3.time_mix_w0.weight", "model.layers.3.attn.w_lora.lora.2.bias"},
        Pair{"rwkv7", "blk.3.time_mix_receptance.weight", "model.layers.3.attn.r_proj.weight"},
        Pair{"rwkv7", "token_embd_norm.bias", "model.layers.0.pre_norm.bias"},
        Pair{"nemotron_h", "blk.0.ssm_in.weight", "backbone.layers.0.mixer.in_proj.weight"},
        Pair{"nemotron_h_moe", "blk.0.ssm_in.weight", "backbone.layers.0.mixer.in_proj.weight"}}) {
    EXPECT_EQ(hf_tensor_name(recurrent_row(pair.file), pair.theirs), pair.ours);
    EXPECT_EQ(gguf_tensor_name(recurrent_row(pair.file), pair.ours), pair.theirs);
  }
}

}  // namespace
}  // namespace foretoken
