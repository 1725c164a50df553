#include "model/files/tensor_names.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(TensorNames, LoseWhatWrappersPutBeforeThem) {
  const std::string plain = "model.layers.0.self_attn.q_proj.weight";
  for (const char* name : {"model.layers.0.self_attn.q_proj.weight",
                           "_orig_mod.model.layers.0.self_attn.q_proj.weight",
                           "model.layers.0._orig_mod.self_attn.q_proj.weight",
                           "module.model.layers.0.self_attn.q_proj.weight",
                           "module._orig_mod.model.layers.0.self_attn.q_proj.weight",
                           "base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight",
                           "_fsdp_wrapped_module.model.layers.0._fsdp_wrapped_module.self_attn."
                           "q_proj.weight"}) {
    EXPECT_EQ(plain_tensor_name(name), plain) << name;
  }
  // Parts of other names stay.
  EXPECT_EQ(plain_tensor_name("x_orig_mod.weight"), "x_orig_mod.weight");
  EXPECT_EQ(plain_tensor_name("model.module.weight"), "model.module.weight");
}

TEST(TensorNames, WrappersBeforeTheFirstTensor) {
  EXPECT_EQ(wrapper_of("_forward_module.model.embed_tokens.weight"), "_forward_module.");
  EXPECT_EQ(wrapper_of("pretrained_model.transformer.wte.weight"), "pretrained_model.");
  for (const char* name : {"model.embed_tokens.weight", "language_model.model.embed_tokens.weight",
                           "text_model.embed_tokens.weight", "a.model.norm.weight"}) {
    EXPECT_EQ(wrapper_of(name), "") << name;
  }
}

TEST(TensorNames, OfAdapters) {
  EXPECT_TRUE(is_adapter_tensor("base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"));
  EXPECT_FALSE(is_adapter_tensor("model.layers.0.mlp.up_proj.weight"));
}

TEST(TensorNames, OfMistralsOwnLayout) {
  EXPECT_EQ(name_without_mistral("layers.12.attention.wq.weight"),
            "model.layers.12.self_attn.q_proj.weight");
  EXPECT_EQ(name_without_mistral("layers.0.feed_forward.w2.weight"),
            "model.layers.0.mlp.down_proj.weight");
  EXPECT_EQ(name_without_mistral("norm.weight"), "model.norm.weight");
  EXPECT_EQ(name_without_mistral("layers.3.attention_norm.weight"),
            "model.layers.3.input_layernorm.weight");
  EXPECT_EQ(name_without_mistral("layers.3.feed_forward.experts.11.w2.weight"),
            "model.layers.3.block_sparse_moe.experts.11.w2.weight");
  EXPECT_EQ(name_without_mistral("layers.3.feed_forward.gate.weight"),
            "model.layers.3.block_sparse_moe.gate.weight");
  EXPECT_EQ(name_without_mistral("layers.3.experts.11.w2.qscale_weight"),
            "model.layers.3.mlp.experts.11.down_proj.weight_scale_inv");
  EXPECT_EQ(name_without_mistral("layers.3.attention.wkv_a_with_mqa.qscale_act"),
            "model.layers.3.self_attn.kv_a_proj_with_mqa.activation_scale");
  EXPECT_EQ(name_without_mistral("layers.3.experts.11.w1.weight_scale"),
            "model.layers.3.mlp.experts.11.gate_proj.weight_scale");
  EXPECT_EQ(name_without_mistral("layers.3.attention.wo.input_global_scale"),
            "model.layers.3.self_attn.o_proj.input_global_scale");
  EXPECT_EQ(name_without_mistral("layers.3.attention.k_fake_quantizer.qscale_act"),
            "model.layers.3.self_attn.attn.k_scale");
  EXPECT_EQ(name_without_mistral("layers.3.attention.q_fake_quantizer.qscale_act"),
            "model.layers.3.self_attn.attn.q_scale");
  EXPECT_EQ(name_without_mistral("layers.3"), "layers.3");
  EXPECT_EQ(name_without_mistral("layers.3.shared_experts.w3.weight"),
            "model.layers.3.mlp.shared_experts.up_proj.weight");
  EXPECT_EQ(name_without_mistral("layers.3.experts.w2.weight"), "layers.3.experts.w2.weight");
  EXPECT_TRUE(is_mistral_vision("vision_encoder.transformer.layers.0.attention.wq.weight"));
  EXPECT_FALSE(is_mistral_vision("layers.0.attention.wq.weight"));
  EXPECT_EQ(name_without_mistral("layers.0.other.weight"), "layers.0.other.weight");
}

}  // namespace
}  // namespace foretoken
