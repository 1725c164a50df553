#include "model/layer/layer_spec.h"

#include <gtest/gtest.h>

#include "model/registry.h"

namespace foretoken {
namespace {

ModelConfig small_config() {
  ModelConfig config;
  config.hidden_size = 32;
  config.intermediate_size = 48;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 16;
  config.attention_bias = config.attention_out_bias = true;
  config.layers = {{0, true}, {9, false}};
  return config;
}

TEST(LayerSpec, LayersFollowTheConfigAndItsPattern) {
  const auto layers = compose_layers(small_config(), {});
  ASSERT_EQ(layers.size(), 2u);
  const auto& first = std::get<GqaSpec>(layers[0].mixer);
  EXPECT_EQ(first.qkv_size(), 128);
  EXPECT_EQ(first.inputs, 32);
  EXPECT_TRUE(first.rope && first.qkv_bias && first.o_bias);
  const auto& second = std::get<GqaSpec>(layers[1].mixer);
  EXPECT_EQ(second.window, 9);
  EXPECT_FALSE(second.rope);
  EXPECT_EQ(std::get<GatedMlpSpec>(layers[1].feed_forward).inner, 48);
  EXPECT_STREQ(layers[0].feed_forward_norm, "post_attention_layernorm");
  EXPECT_EQ(layers[0].feed_forward_post_norm, nullptr);
}

TEST(LayerSpec, ArchitecturesComposeTheirOwn) {
  const auto layer = [](const char* name) {
    const ModelConfig config = small_config();
    return find_architecture(name)->decoder.layer(config, config.layers[0]);
  };
  const LayerSpec qwen2 = layer("Qwen2ForCausalLM");
  EXPECT_TRUE(std::get<GqaSpec>(qwen2.mixer).qkv_bias);
  EXPECT_FALSE(std::get<GqaSpec>(qwen2.mixer).o_bias);
  EXPECT_EQ(std::get<GqaSpec>(layer("Qwen3ForCausalLM").mixer).qk_norm, QkNorm::kHead);
  EXPECT_TRUE(std::get<GatedMlpSpec>(layer("Phi3ForCausalLM").feed_forward).fused);
  EXPECT_STREQ(layer("Gemma2ForCausalLM").mixer_post_norm, "post_attention_layernorm");
}

TEST(LayerSpec, RanksHavePartsAndAtLeastOneHeadOfKeys) {
  const ModelConfig config = small_config();
  const GqaSpec part = part_of(gqa_of(config, config.layers[0]), {3, 4});
  EXPECT_EQ(part.num_heads, 1);
  EXPECT_EQ(part.num_kv_heads, 1);
  EXPECT_EQ(part_of(gated_mlp_of(config, config.layers[0]), {1, 4}).inner, 12);
}

TEST(LayerSpec, TheMixerKnowsItsKv) {
  const ModelConfig config = small_config();
  const KvGroupSpec kv = kv_layout(gqa_of(config, config.layers[0]), DType::kBF16, KvFormat::kInt8);
  EXPECT_EQ(kv, (KvGroupSpec{1, 2, 16, DType::kBF16, 0, KvFormat::kInt8}));
}

TEST(LayerSpec, CompressedEntriesKnowWhatOfThemTurns) {
  const CompressedSpec spec{.num_heads = 4,
                            .head_dim = 512,
                            .rope_dim = 64,
                            .ratio = 4,
                            .index = {.num_heads = 2, .head_dim = 128, .top = 8}};
  const KvGroupSpec kv = kv_layout(spec, DType::kBF16, KvFormat::kFp8);
  EXPECT_EQ(kv.format, KvFormat::kFp8);
  EXPECT_EQ(kv.rope_dim, 64);
  EXPECT_EQ(kv.compressed[0], (KvRowsSpec{512, 4, 1, 64}));
  EXPECT_EQ(kv.index, (KvRowsSpec{128, 4, 1}));
  EXPECT_EQ(kv_layout(spec, DType::kBF16, KvFormat::kInt8).format, KvFormat::kInt8);
}

TEST(LayerSpec, LatentsAreWholeOnEveryRank) {
  ModelConfig config = small_config();
  config.latent = {.q_rank = 24, .kv_rank = 32, .nope_dim = 12, .rope_dim = 8, .value_dim = 16};
  config.attention_scale = 0.25f;
  const LatentSpec whole = latent_of(config, config.layers[0]);
  EXPECT_EQ(whole.q_size(), 4 * 20);
  EXPECT_EQ(whole.entry_dim(), 40);
  EXPECT_EQ(whole.first_size(), 24 + 40);
  EXPECT_EQ(whole.scale, 0.25f);
  EXPECT_TRUE(whole.paired && whole.bias && whole.o_bias);
  const LatentSpec part = part_of(whole, {1, 2});
  EXPECT_EQ(part.num_heads, 2);
  EXPECT_EQ(part.first_size(), whole.first_size());
  KvGroupSpec kv{1, 1, 40, DType::kBF16};
  kv.value_dim = 32;
  EXPECT_EQ(kv_layout(part, DType::kBF16, KvFormat::kPlain), kv);
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kFp8}) {
    kv.format = format;
    EXPECT_EQ(kv_layout(part, DType::kBF16, format), kv);
  }
}

}  // namespace
}  // namespace foretoken
