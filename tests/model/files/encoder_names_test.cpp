#include "model/files/encoder_names.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(EncoderNames, AreThoseOfDecoders) {
  const std::string base = encoder_base("bert.embeddings.word_embeddings.weight").value();
  EXPECT_EQ(base, "bert.");
  const auto name = [&](const std::string& own) { return name_without_encoder(base, own); };
  EXPECT_EQ(name("bert.embeddings.word_embeddings.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(name("bert.embeddings.LayerNorm.gamma"), "model.embed_norm.weight");
  EXPECT_EQ(name("bert.encoder.layer.3.attention.self.query.bias"),
            "model.layers.3.self_attn.q_proj.bias");
  EXPECT_EQ(name("bert.encoder.layer.3.attention.output.LayerNorm.beta"),
            "model.layers.3.self_attn_layer_norm.bias");
  EXPECT_EQ(name("bert.encoder.layer.3.attention.output.dense.weight"),
            "model.layers.3.self_attn.o_proj.weight");
  EXPECT_EQ(name("bert.encoder.layer.3.output.dense.weight"),
            "model.layers.3.mlp.down_proj.weight");
  EXPECT_EQ(name("bert.encoder.layer.3.output.LayerNorm.weight"),
            "model.layers.3.final_layer_norm.weight");
  EXPECT_EQ(name("bert.embeddings.position_ids"), "");
  EXPECT_EQ(name("bert.pooler.dense.weight"), "pooler.dense.weight");
  EXPECT_EQ(name("cls.predictions.bias"), "cls.predictions.bias");
}

TEST(EncoderNames, OfDistilBertAndNomic) {
  EXPECT_EQ(name_without_encoder("", "transformer.layer.0.attention.out_lin.weight"),
            "model.layers.0.self_attn.o_proj.weight");
  EXPECT_EQ(name_without_encoder("", "transformer.layer.0.output_layer_norm.bias"),
            "model.layers.0.final_layer_norm.bias");
  EXPECT_EQ(name_without_encoder("", "encoder.layers.0.attn.Wqkv.weight"),
            "model.layers.0.self_attn.qkv_proj.weight");
  EXPECT_EQ(name_without_encoder("", "encoder.layers.0.mlp.fc12.weight"),
            "model.layers.0.mlp.gate_proj.weight");
  EXPECT_EQ(name_without_encoder("", "emb_ln.weight"), "model.embed_norm.weight");
}

TEST(EncoderNames, OtherFilesHaveNoBase) {
  EXPECT_FALSE(encoder_base("transformer.word_embeddings.weight").has_value());
  EXPECT_FALSE(encoder_base("model.embed_tokens.weight").has_value());
}

}  // namespace
}  // namespace foretoken
