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

TEST(LayerNeeds, MixersTellThem) {
  const LayerNeeds none = needs_of_mixer(GqaSpec{});
  EXPECT_FALSE(none.heads_take_turns || none.has_slopes);
  EXPECT_TRUE(needs_of_mixer(GqaSpec{.slopes = {1}}).has_slopes);
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
