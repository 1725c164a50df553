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
  EXPECT_FALSE(needs_of_mixer(GqaSpec{}).has_slopes);
  EXPECT_FALSE(needs_of_mixer(LinearSpec{}).has_slopes);
  EXPECT_TRUE(needs_of_mixer(GqaSpec{.slopes = {1}}).has_slopes);
}

TEST(LayerNeeds, AMixerBesideAnotherTellsItsOwn) {
  LayerSpec layer;
  layer.mixer = GqaSpec{.slopes = {1}};
  layer.side = LinearSpec{};
  EXPECT_TRUE(needs_of(layer).has_slopes);
}

}  // namespace
}  // namespace foretoken
