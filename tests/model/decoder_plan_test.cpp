#include "model/decoder_plan.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

ModelConfig config_of(std::vector<LayerConfig> layers) {
  ModelConfig config;
  config.num_heads = config.num_kv_heads = 2;
  config.head_dim = 16;
  config.layers = std::move(layers);
  return config;
}

DecoderPlan plan_of(const ModelConfig& config, int32_t max_model_len, bool one_kv_group) {
  return plan_decoder(config, compose_layers(config, {}), {max_model_len, one_kv_group});
}

// Layers that attend to what another one chose keep no key of an indexer.
TEST(DecoderPlan, IndexersHavePlacesOfTheirOwn) {
  ModelConfig config = config_of({{}, {}, {}, {}});
  config.architecture = "DeepseekV32ForCausalLM";
  config.latent = {.q_rank = 8, .kv_rank = 16, .nope_dim = 8, .rope_dim = 4, .value_dim = 16};
  config.latent.index = {.num_heads = 2, .head_dim = 16, .top = 5};
  config.layers[1].shares_index = true;
  const DecoderTraits& traits = find_architecture(config.architecture)->decoder;
  const DecoderPlan plan = plan_decoder(config, compose_layers(config, traits), {100, false});
  EXPECT_EQ(plan.groups[0].num_layers, 4);
  EXPECT_EQ(plan.groups[0].index.dim, 16);
  EXPECT_EQ(plan.groups[0].index.num_layers, 3);
  EXPECT_EQ(plan.layers[1].index_place, -1);
  EXPECT_EQ(plan.layers[3].index_place, 2);
}

TEST(DecoderPlan, OneGroupWithoutWindows) {
  const DecoderPlan plan = plan_of(config_of({{0, true}, {0, false}}), 100, false);
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0], (KvGroupSpec{2, 2, 16, DType::kF32, 0}));
  EXPECT_EQ(plan.layers[1].group_index, 1);
  EXPECT_EQ(plan.layers[0].rope, LayerRope::kFull);
  EXPECT_EQ(plan.layers[1].rope, LayerRope::kNone);
}

TEST(DecoderPlan, LayersCountInTheirGroups) {
  ModelConfig config = config_of({{9, true}, {0, true}, {9, true}, {0, true}, {9, true}});
  config.rope.windowed.emplace();
  const DecoderPlan plan = plan_of(config, 100, false);
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[0], (KvGroupSpec{2, 2, 16, DType::kF32, 0}));
  EXPECT_EQ(plan.groups[1], (KvGroupSpec{3, 2, 16, DType::kF32, 9}));
  EXPECT_EQ(plan.layers[3].group_index, 1);
  EXPECT_EQ(plan.layers[4].group_index, 2);
  EXPECT_EQ(plan.layers[4].window, 9);
  EXPECT_EQ(plan.layers[4].rope, LayerRope::kWindowed);
  EXPECT_EQ(plan.layers[3].rope, LayerRope::kFull);
}

TEST(DecoderPlan, LayersOfOneWindowSeeTheSame) {
  ModelConfig config = config_of({{9, true}, {9, false}, {0, true}, {7, true}, {0, false}});
  config.rope.windowed.emplace();
  for (const bool one_group : {false, true}) {
    const DecoderPlan plan = plan_of(config, 100, one_group);
    EXPECT_TRUE(plan.layers[1].sees_as(plan.layers[0]));
    EXPECT_FALSE(plan.layers[2].sees_as(plan.layers[1]));
    EXPECT_FALSE(plan.layers[3].sees_as(plan.layers[0]));
    EXPECT_TRUE(plan.layers[4].sees_as(plan.layers[2]));
  }
}

TEST(DecoderPlan, TheFullGroupMayHaveNoLayers) {
  const DecoderPlan plan = plan_of(config_of({{9, true}, {9, true}}), 100, false);
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[0].num_layers, 0);
  EXPECT_EQ(plan.groups[1].num_layers, 2);
}

// A row sees as many positions as the longest sequence has.
TEST(DecoderPlan, WindowsThatNothingOutgrowsAreLeftOut) {
  ModelConfig config = config_of({{9, true}, {9, true}});
  config.rope.windowed.emplace();
  EXPECT_EQ(plan_of(config, 10, false).groups.size(), 2u);
  const DecoderPlan plan = plan_of(config, 9, false);
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0], (KvGroupSpec{2, 2, 16, DType::kF32, 0}));
  // The layer still turns as it was trained.
  EXPECT_EQ(plan.layers[0].rope, LayerRope::kWindowed);
}

TEST(DecoderPlan, OneGroupKeepsTheWindowsOfAttention) {
  ModelConfig config = config_of({{9, true}, {0, true}, {9, true}});
  config.rope.windowed.emplace();
  const DecoderPlan plan = plan_of(config, 100, true);
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0], (KvGroupSpec{3, 2, 16, DType::kF32, 0}));
  EXPECT_EQ(plan.layers[2].group_index, 2);
  EXPECT_FALSE(plan.layers[2].windowed_group);
  EXPECT_EQ(plan.layers[2].window, 9);
  EXPECT_EQ(plan.layers[1].window, 0);
  EXPECT_EQ(plan.layers[2].rope, LayerRope::kWindowed);
}

// Layers without attention have no KV, and those with fewer heads use the front of the others'.
TEST(DecoderPlan, LayersMayLackAttentionOrHaveFewerHeads) {
  ModelConfig config = config_of({{0, true}, {0, true}, {0, true}});
  config.num_heads = 4;
  config.layers[2].num_kv_heads = 1;
  auto layers = compose_layers(config, {});
  layers[1].mixer = Absent();
  const DecoderPlan plan = plan_decoder(config, layers, {100, false});
  ASSERT_EQ(plan.groups.size(), 1u);
  KvGroupSpec uneven{2, 2, 16, DType::kF32, 0};
  uneven.layer_bytes = {2 * 16 * 4, 16 * 4};
  EXPECT_EQ(plan.groups[0], uneven);
  EXPECT_EQ(plan.layers[1].num_heads, 0);
  EXPECT_EQ(plan.layers[2].group_index, 1);
  EXPECT_FALSE(plan.layers[2].sees_as(plan.layers[0]));
  // A stage with the small layer alone.
  const DecoderPlan last = plan_decoder(config, layers, {100, false}, {.rank = 1, .count = 2});
  EXPECT_EQ(last.groups[0].num_kv_heads, 2);
  EXPECT_EQ(last.groups[0].layer_bytes, (std::vector<int64_t>{16 * 4}));
}

TEST(DecoderPlan, StatesAreThoseOfTheStagesLayers) {
  const ModelConfig config = config_of({{}, {}, {}, {}});
  auto layers = compose_layers(config, {});
  const ShortConvSpec conv{.inputs = 32, .channels = 32, .width = 3};
  layers[0].mixer = layers[3].mixer = conv;
  const DecoderPlan whole = plan_decoder(config, layers, {100, false});
  EXPECT_EQ(whole.layers[0].state.conv_channels, 32);
  EXPECT_EQ(whole.layers[0].num_heads, 0);
  EXPECT_FALSE(whole.layers[1].state.exists());
  EXPECT_EQ(whole.groups[0].num_layers, 2);
  const DecoderPlan second = plan_decoder(config, layers, {100, false}, {.rank = 1, .count = 2});
  EXPECT_FALSE(second.layers[0].state.exists());
  EXPECT_TRUE(second.layers[3].state.exists());
  for (LayerSpec& layer : layers) layer.mixer = conv;
  const DecoderPlan pure = plan_decoder(config, layers, {100, false});
  ASSERT_EQ(pure.groups.size(), 1u);
  EXPECT_EQ(pure.groups[0].num_layers, 0) << "token pages alone";
}

TEST(DecoderPlan, LatentsAreOneGroupOfOneHead) {
  ModelConfig config = config_of({{}, {}, {}});
  config.latent = {.q_rank = 0, .kv_rank = 32, .nope_dim = 12, .rope_dim = 8, .value_dim = 16};
  config.num_kv_heads = 1;
  config.head_dim = 40;
  const LayerSpec layer =
      pre_norm_layer(latent_of(config, config.layers[0]), gated_mlp_of(config, config.layers[0]));
  const DecoderPlan plan = plan_decoder(config, std::vector<LayerSpec>(3, layer), {100, false});
  ASSERT_EQ(plan.groups.size(), 1u);
  KvGroupSpec group{3, 1, 40, DType::kF32};
  group.value_dim = 32;
  EXPECT_EQ(plan.groups[0], group);
  EXPECT_EQ(plan.layers[2].value_dim, 32);
  EXPECT_EQ(plan.layers[2].rope, LayerRope::kFull);
  EXPECT_TRUE(plan.layers[2].sees_as(plan.layers[1]));
}

}  // namespace
}  // namespace foretoken
