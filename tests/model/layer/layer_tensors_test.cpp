#include "model/layer/layer_tensors.h"

#include <gtest/gtest.h>

#include <set>

#include "model/files/checkpoint.h"
#include "model/registry.h"
#include "support/folders.h"

namespace foretoken {
namespace {

class LayerTensors : public testing::TestWithParam<const char*> {};

// What the layers of a published form hold, no more and no less.
TEST_P(LayerTensors, AreThoseOfTheCheckpoint) {
  const std::string folder =
      std::string(foretoken::kSourceFolder) + "/tests/golden/architectures/" + GetParam();
  const ModelConfig config = read_model_config(folder, {}).value();
  const Checkpoint checkpoint = Checkpoint::open(folder).value();
  const auto layers = compose_layers(config, find_architecture(config.architecture)->decoder);
  std::set<std::string> names;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const LayerTensor& tensor :
         layer_tensors(layers[i], find_architecture(config.architecture)->decoder.norms,
                       config.hidden_size)) {
      const std::string name = "model.layers." + std::to_string(i) + "." + tensor.name;
      EXPECT_TRUE(names.insert(name).second) << name;
      std::vector<int64_t> shape = {tensor.rows};
      if (tensor.cols > 0) shape.push_back(tensor.cols);
      const auto found = checkpoint.find(name);
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(found.value()->shape, shape) << name;
    }
  }
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    EXPECT_EQ(name.starts_with("model.layers."), names.contains(name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, LayerTensors,
                         testing::Values("gemma2", "gemma3", "llama", "mistral", "phi3", "qwen2",
                                         "qwen3", "smollm3", "youtu", "deepseek_v2",
                                         "deepseek_v2-lite", "gemma3n", "bitnet"));

}  // namespace
}  // namespace foretoken
