#include "model/layer/layer_needs.h"

#include <gtest/gtest.h>

#include <utility>

namespace foretoken {
namespace {

LayerNeeds needs_of(const LayerSpec& layer) { return needs_of(ModelConfig{}, layer); }

LayerNeeds needs_of_mixer(MixerSpec mixer) {
  LayerSpec layer;
  layer.mixer = std::move(mixer);
  return needs_of(layer);
}

LayerNeeds needs_of_feed_forward(FeedForwardSpec part) {
  LayerSpec layer;
  layer.feed_forward = std::move(part);
  return needs_of(layer);
}

TEST(LayerNeeds, MixersAndFeedForwardPartsTellThem) {
  const LayerNeeds none = needs_of_mixer(GqaSpec{});
  EXPECT_FALSE(none.norm_all_heads || none.mask_by_all_values || none.has_slopes);
  EXPECT_FALSE(none.mlp_sees_all || none.scan_selectively || none.round_whole_rows);
  EXPECT_TRUE(needs_of_mixer(GqaSpec{.qk_norm = QkNorm::kWidth}).norm_all_heads);
  EXPECT_TRUE(needs_of_mixer(GqaSpec{.sub_norm = "norm"}).norm_all_heads);
  EXPECT_TRUE(needs_of_mixer(GqaSpec{.dynamic_mask = true}).mask_by_all_values);
  EXPECT_TRUE(needs_of_mixer(GqaSpec{.slopes = {1}}).has_slopes);
  EXPECT_TRUE(needs_of_mixer(SelectiveSpec{}).scan_selectively);
  EXPECT_TRUE(needs_of_feed_forward(GatedMlpSpec{.sparsity = 0.5f}).mlp_sees_all);
  EXPECT_TRUE(needs_of_feed_forward(ExpertsSpec{.zero_count = 2}).has_idle_experts);
  LayerSpec layer;
  layer.shortcut = ExpertsSpec{.latent = 8};
  EXPECT_TRUE(needs_of(layer).has_narrow_experts);
}

TEST(LayerNeeds, ALinearMixerBesideAnotherTellsItsOwn) {
  LinearSpec linear;
  linear.shape.tiled = true;
  linear.shape.key_heads = 2;
  linear.shape.value_heads = 4;
  LayerSpec layer;
  layer.side = linear;
  EXPECT_TRUE(needs_of(layer).heads_take_turns);
  linear.shape.value_heads = 2;
  EXPECT_FALSE(needs_of_mixer(linear).heads_take_turns);
  linear.norm_groups = 4;
  EXPECT_EQ(needs_of_mixer(linear).norm_groups, 4);
}

TEST(LayerNeeds, ProductsThatRoundRowsAreOfAllLayers) {
  ModelConfig config;
  config.rounds_to_int8 = true;
  EXPECT_TRUE(needs_of(config, LayerSpec{}).round_whole_rows);
}

}  // namespace
}  // namespace foretoken
