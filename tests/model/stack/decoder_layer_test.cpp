#include "model/stack/decoder_layer.h"

#include "model/layer/layer_tensors.h"
#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class DecoderLayerTest : public test::PartTest {
 protected:
  void SetUp() override {
    PartTest::SetUp();
    config_.intermediate_size = 12;
    config_.num_heads = config_.num_kv_heads = 2;
    config_.head_dim = 4;
    spec_ = llama_layer(config_, {});
    spec_.mixer_post_norm = "behind_attention";
    for (const LayerTensor& tensor : layer_tensors(spec_, {}, config_.hidden_size)) {
      std::vector<int64_t> shape = {tensor.rows};
      if (tensor.cols > 0) shape.push_back(tensor.cols);
      add("layers.7." + tensor.name, shape);
    }
  }

  LayerSpec spec_;
};

TEST_F(DecoderLayerTest, LoadsTheNormsThatItNames) {
  const DecoderLayer layer = load_part<DecoderLayer>([&](PartLoader& loader, DecoderLayer* out) {
    return load_layer(loader, "layers.7.", spec_, out);
  });
  EXPECT_EQ(unused_, "");
  const auto& values = tensors_["layers.7.behind_attention.weight"].values;
  expect_near(layer.mixer_post_norm.weight, {values.begin(), values.end()});
  EXPECT_NE(layer.feed_forward_norm.weight, nullptr);
  EXPECT_EQ(layer.feed_forward_post_norm.weight, nullptr);
  EXPECT_EQ(std::get<Gqa>(layer.mixer).qkv.outputs, 24);
  EXPECT_EQ(std::get<GatedMlp>(layer.feed_forward).down.inputs, 12);
}

TEST(DecoderLayer, MixersSayWhatTheySeeAndTurn) {
  DecoderLayer layer;
  Gqa& gqa = layer.mixer.emplace<Gqa>();
  gqa.spec.window = 64;
  gqa.spec.rope = false;
  EXPECT_EQ(kept_window(layer), 64);
  EXPECT_FALSE(turns_rows(layer));
  layer.mixer.emplace<Latent>();
  EXPECT_EQ(kept_window(layer), 0);
  EXPECT_TRUE(turns_rows(layer));
}

TEST_F(DecoderLayerTest, AMissingTensorIsNamed) {
  tensors_.erase("layers.7.mlp.up_proj.weight");
  load_part<DecoderLayer>([&](PartLoader& loader, DecoderLayer* out) {
    const Status status = load_layer(loader, "layers.7.", spec_, out);
    EXPECT_NE(status.message().find("layers.7.mlp.up_proj.weight"), std::string::npos);
    return Status();
  });
}

}  // namespace
}  // namespace foretoken
