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

TEST(EncoderNames, OfModernBert) {
  const std::string base = encoder_base("model.embeddings.tok_embeddings.weight").value();
  EXPECT_EQ(base, "model.");
  const auto name = [&](const std::string& own) { return name_without_encoder(base, own); };
  EXPECT_EQ(name("model.embeddings.tok_embeddings.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(name("model.embeddings.norm.weight"), "model.embed_norm.weight");
  EXPECT_EQ(name("model.layers.1.attn_norm.weight"), "model.layers.1.self_attn_layer_norm.weight");
  EXPECT_EQ(name("model.layers.1.attn.Wo.weight"), "model.layers.1.self_attn.o_proj.weight");
  EXPECT_EQ(name("model.layers.1.mlp.Wi.weight"), "model.layers.1.mlp.gate_up_proj.weight");
  EXPECT_EQ(name("model.layers.1.mlp.Wo.weight"), "model.layers.1.mlp.down_proj.weight");
  EXPECT_EQ(name("model.final_norm.weight"), "model.norm.weight");
  EXPECT_EQ(name("head.dense.weight"), "head.dense.weight");
}

TEST(EncoderNames, OfGteMpnetAndJina) {
  EXPECT_EQ(name_without_encoder("new.", "new.encoder.layer.2.attention.qkv_proj.bias"),
            "model.layers.2.self_attn.qkv_proj.bias");
  EXPECT_EQ(name_without_encoder("new.", "new.encoder.layer.2.mlp.up_gate_proj.weight"),
            "model.layers.2.mlp.gate_up_proj.weight");
  EXPECT_EQ(name_without_encoder("new.", "new.encoder.layer.2.mlp_ln.weight"),
            "model.layers.2.final_layer_norm.weight");
  EXPECT_EQ(name_without_encoder("", "encoder.relative_attention_bias.weight"),
            "model.relative_attention_bias.weight");
  EXPECT_EQ(name_without_encoder("", "encoder.layer.0.attention.attn.q.weight"),
            "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(name_without_encoder("", "encoder.layer.0.attention.LayerNorm.bias"),
            "model.layers.0.self_attn_layer_norm.bias");
  EXPECT_EQ(name_without_encoder("", "encoder.layer.0.mlp.gated_layers.weight"),
            "model.layers.0.mlp.gate_up_proj.weight");
  EXPECT_EQ(name_without_encoder("", "encoder.layer.0.mlp.layernorm.bias"),
            "model.layers.0.final_layer_norm.bias");
}

TEST(EncoderNames, AdaptersOfTasksAreLeftOut) {
  const std::string words = "roberta.embeddings.word_embeddings.parametrizations.weight.original";
  EXPECT_EQ(encoder_base(words).value(), "roberta.");
  const auto name = [](const std::string& own) { return name_without_encoder("roberta.", own); };
  EXPECT_EQ(name(words), "model.embed_tokens.weight");
  EXPECT_EQ(name("roberta.encoder.layers.0.mixer.Wqkv.parametrizations.weight.original"),
            "model.layers.0.self_attn.qkv_proj.weight");
  EXPECT_EQ(name("roberta.encoder.layers.0.mixer.Wqkv.bias"),
            "model.layers.0.self_attn.qkv_proj.bias");
  EXPECT_EQ(name("roberta.encoder.layers.0.mlp.fc1.parametrizations.weight.0.lora_A"), "");
}

TEST(EncoderNames, OtherFilesHaveNoBase) {
  EXPECT_FALSE(encoder_base("transformer.word_embeddings.weight").has_value());
  EXPECT_FALSE(encoder_base("model.embed_tokens.weight").has_value());
}

}  // namespace
}  // namespace foretoken
