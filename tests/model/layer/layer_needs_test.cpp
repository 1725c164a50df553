#include "model/layer/layer_needs.h"

#include <gtest/gtest.h>

#include <utility>

namespace foretoken {
namespace {

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
  EXPECT_FALSE(none.heads_take_turns || none.has_slopes || none.has_idle_experts);
  EXPECT_TRUE(needs_of_mixer(GqaSpec{.slopes = {1}}).has_slopes);
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
}

}  // namespace
}  // namespace foretoken
