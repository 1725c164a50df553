#include "convert/model_tensors.h"

#include <gtest/gtest.h>

#include "convert/golden_models.h"
#include "model/registry.h"

namespace foretoken {
namespace {

class ModelTensors : public ::testing::TestWithParam<const char*> {};

TEST_P(ModelTensors, AreThoseOfTheCheckpoint) {
  const test::ScratchFolder folder;
  test::copy_golden(GetParam(), folder);
  const auto config = read_model_config(folder.path(), {});
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(config.ok() && checkpoint.ok());
  const auto tensors =
      model_tensors(config.value(), find_architecture(config.value().architecture)->decoder);
  const auto views = find_tensors(checkpoint.value(), tensors);
  ASSERT_TRUE(views.ok()) << views.status().message();
  EXPECT_EQ(views.value().size(), checkpoint.value().tensors().size());
  EXPECT_TRUE(tensors.back().is_output);
}

INSTANTIATE_TEST_SUITE_P(Architectures, ModelTensors,
                         ::testing::Values("llama", "mistral", "qwen2", "qwen3"));

TEST(ModelTensors, MissingAndOddOnesAreNamed) {
  const test::ScratchFolder folder;
  test::copy_golden("llama", folder);
  const auto checkpoint = Checkpoint::open(folder.path());
  ModelConfig config = read_model_config(folder.path(), {}).value();
  const auto problem = [&] {
    return find_tensors(checkpoint.value(), model_tensors(config, {})).status().message();
  };
  const int32_t layers = config.num_layers;
  config.num_layers = layers + 1;
  config.layers.emplace_back();
  EXPECT_NE(problem().find("model.layers." + std::to_string(layers)), std::string::npos);
  config.num_layers = layers - 1;
  EXPECT_NE(problem().find("it would be lost"), std::string::npos);
  config.num_layers = layers;
  config.intermediate_size += 1;
  EXPECT_NE(problem().find("has shape"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
