#include "model/draft_head_spec.h"

#include <gtest/gtest.h>

#include <variant>

namespace foretoken {
namespace {

DraftHeadConfig spec_config(HeadKind kind) {
  DraftHeadConfig config;
  config.kind = kind;
  config.layer.architecture = "LlamaForCausalLM";
  config.layer.hidden_size = 32;
  config.layer.intermediate_size = 48;
  config.layer.num_heads = config.layer.num_kv_heads = 2;
  config.layer.head_dim = 16;
  config.layer.vocab_size = config.draft_vocab_size = 100;
  config.layer.dtype = DType::kF32;
  config.tap_layers = {0, 1, 2};
  config.num_layers = 3;
  config.layer.layers.assign(3, LayerConfig{});
  return config;
}

int32_t inputs_of(const LayerSpec& layer) { return std::get<GqaSpec>(layer.mixer).inputs; }

TEST(DraftHeadSpec, TheFirstLayerOfAnEagleHeadIsAnother) {
  const DecoderTraits& traits = find_architecture("LlamaForCausalLM")->decoder;
  const LayerSpec eagle = head_layer_spec(spec_config(HeadKind::kEagle), traits, {});
  EXPECT_EQ(eagle.mixer_norm, nullptr);
  for (const HeadKind kind : {HeadKind::kEagle3, HeadKind::kPeagle}) {
    const LayerSpec first = head_layer_spec(spec_config(kind), traits, {});
    EXPECT_NE(first.mixer_norm, nullptr);
    EXPECT_EQ(inputs_of(first), 64);
  }
  for (const HeadKind kind : {HeadKind::kEagle, HeadKind::kEagle3, HeadKind::kPeagle}) {
    const LayerSpec deeper = head_layer_spec(spec_config(kind), traits, {.depth = 2});
    EXPECT_NE(deeper.mixer_norm, nullptr);
    EXPECT_NE(inputs_of(deeper), 64);
  }
}

TEST(DraftHeadSpec, BytesOfEveryLayer) {
  ModelConfig target;
  target.hidden_size = 32;
  // q, k, v and o, the feed-forward part, two norms.
  constexpr int64_t kPlain = 4 * 32 * 32 + 3 * 32 * 48 + 2 * 32;
  constexpr int64_t kFirst = kPlain + 3 * 32 * 32;  // q, k and v read twice as much
  DraftHeadConfig config = spec_config(HeadKind::kPeagle);
  EXPECT_EQ(draft_head_weight_bytes(config, target), 4 * (3 * 32 * 32 + kFirst + 2 * kPlain));
  config.num_layers = 1;
  EXPECT_EQ(draft_head_weight_bytes(config, target), 4 * (3 * 32 * 32 + kFirst));
}

}  // namespace
}  // namespace foretoken
