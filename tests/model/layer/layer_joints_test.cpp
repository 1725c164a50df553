#include "model/layer/layer_joints.h"

#include <gtest/gtest.h>

#include <functional>

namespace foretoken {
namespace {

LayerSpec plain() { return pre_norm_layer(GqaSpec(), GatedMlpSpec()); }

TEST(LayerJoints, TheMostFrequentLayerHasAll) { EXPECT_TRUE(joints_of(plain()).all()); }

TEST(LayerJoints, NormsBehindPartsKeepTheirSumsApart) {
  for (const LayerSpec& spec :
       {post_norm_layer(GqaSpec(), GatedMlpSpec()), sandwich_layer(GqaSpec(), GatedMlpSpec())}) {
    const LayerJoints joints = joints_of(spec);
    EXPECT_TRUE(joints.norm_enters && joints.parts_alone);
    EXPECT_FALSE(joints.norm_between || joints.sum_ends);
  }
}

// What a layer has beyond its parts takes the joints that it stands in, and the fused op of all.
TEST(LayerJoints, WhatStandsBetweenTakesItsJoint) {
  struct Case {
    const char* name;
    std::function<void(LayerSpec&)> change;
    LayerJoints wanted;
  };
  const Case cases[] = {
      {"side", [](LayerSpec& s) { s.side.emplace(); }, {true, false, true, false}},
      {"beside", [](LayerSpec& s) { s.beside.emplace(); }, {true, false, false, false}},
      {"shortcut", [](LayerSpec& s) { s.shortcut.emplace(); }, {true, true, true, false}},
      {"joined", [](LayerSpec& s) { s.joins_shortcut = true; }, {true, true, false, false}},
      {"parallel", [](LayerSpec& s) { s.parallel = true; }, {true, false, false, true}},
      {"normed", [](LayerSpec& s) { s.norms_residual = true; }, {false, false, true, true}},
      {"weighed", [](LayerSpec& s) { s.mixer_residual = "a"; }, {true, true, true, false}},
      {"weighed", [](LayerSpec& s) { s.feed_forward_residual = "a"; }, {true, true, true, false}},
      {"input", [](LayerSpec& s) { s.input_size = 4; }, {true, true, false, false}},
      {"scaled", [](LayerSpec& s) { s.scaled = true; }, {true, true, false, false}},
      {"streams", [](LayerSpec& s) { s.streams.count = 4; }, {false, false, false, false}},
      {"hyper", [](LayerSpec& s) { s.hyper.count = 4; }, {false, false, false, false}},
      {"depth", [](LayerSpec& s) { s.depth.exists = true; }, {false, false, false, false}},
      {"shared", [](LayerSpec& s) { s.shared.from = 0; }, {false, false, false, false}},
      {"gated", [](LayerSpec& s) { s.mixer_gate.rank = 4; }, {true, true, true, false}},
      {"gated", [](LayerSpec& s) { s.feed_forward_gate.rank = 4; }, {true, true, true, false}},
      {"laurel", [](LayerSpec& s) { s.laurel_rank = 4; }, {true, false, false, false}},
  };
  for (const auto& [name, change, wanted] : cases) {
    LayerSpec spec = plain();
    change(spec);
    const LayerJoints joints = joints_of(spec);
    EXPECT_EQ(joints.norm_enters, wanted.norm_enters) << name;
    EXPECT_EQ(joints.norm_between, wanted.norm_between) << name;
    EXPECT_EQ(joints.sum_ends, wanted.sum_ends) << name;
    EXPECT_EQ(joints.parts_alone, wanted.parts_alone) << name;
    EXPECT_FALSE(joints.all()) << name;
  }
}

}  // namespace
}  // namespace foretoken
