#include "model/stack/layer_inputs.h"

#include <gtest/gtest.h>

#include "model/layer/layer_spec.h"
#include "model/layer/layer_tensors.h"

namespace foretoken {
namespace {

// tests/model/decoder_test.cpp holds what they make against transformers; here stand their sizes.

TEST(LayerInputs, CountATableAProjectionAndANorm) {
  ModelConfig config;
  config.num_layers = 3;
  config.hidden_size = 32;
  EXPECT_EQ(LayerInputs::num_weights(config), 0);
  config.layer_input_size = 8;
  config.layer_input_vocab = 100;
  EXPECT_EQ(LayerInputs::num_weights(config), 100 * 24 + 24 * 32 + 8);
}

TEST(LayerInputs, ALayerHasTheirTensorsBehindItsParts) {
  EXPECT_FALSE(LayerInput{}.exists());
  LayerSpec layer;
  layer.mixer = Absent{};
  layer.feed_forward = Absent{};
  layer.input_size = 8;
  layer.scaled = true;
  std::vector<std::string> names;
  for (const LayerTensor& tensor : layer_tensors(layer, {}, 32)) names.push_back(tensor.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"per_layer_input_gate.weight", "per_layer_projection.weight",
                                      "post_per_layer_input_norm.weight", "layer_scalar"}));
}

}  // namespace
}  // namespace foretoken
