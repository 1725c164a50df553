#include "model/weights/stages.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Stages, EachLayerHasOneOwner) {
  for (const int32_t count : {1, 2, 3, 4}) {
    for (const int32_t num_layers : {4, 5, 10, 32}) {
      int32_t next = 0;
      for (int32_t rank = 0; rank < count; ++rank) {
        const Stages stages{rank, count};
        const ShardRange own = stages.layers(num_layers);
        EXPECT_EQ(own.begin, next);
        EXPECT_GE(own.count, 1);
        for (int32_t layer = 0; layer < num_layers; ++layer) {
          EXPECT_EQ(stages.owns(layer, num_layers),
                    layer >= own.begin && layer < own.begin + own.count);
        }
        next = static_cast<int32_t>(own.begin + own.count);
      }
      EXPECT_EQ(next, num_layers);
    }
  }
}

ModelConfig staged_config(std::vector<LayerConfig> layers) {
  ModelConfig config;
  config.num_layers = static_cast<int32_t>(layers.size());
  config.layers = std::move(layers);
  return config;
}

std::vector<int64_t> sizes_of(const ModelConfig& config, int32_t count) {
  std::vector<int64_t> sizes;
  for (int32_t rank = 0; rank < count; ++rank) {
    const auto stages = divide_layers(config, {rank, count});
    EXPECT_TRUE(stages.ok()) << stages.status().message();
    sizes.push_back(stages.value().layers(config.num_layers).count);
  }
  return sizes;
}

TEST(Stages, MoreStagesThanLayersAreRefused) {
  const ModelConfig config = staged_config(std::vector<LayerConfig>(4));
  EXPECT_EQ(max_stages(config), 4);
  EXPECT_TRUE(divide_layers(config, {0, 4}).ok());
  const Status status = divide_layers(config, {0, 5}).status();
  EXPECT_NE(status.message().find("--pipeline-parallel-size 5 exceeds the model's 4 layers"),
            std::string::npos)
      << status.message();
}

using Sizes = std::vector<int64_t>;

TEST(Stages, LayersThatMayAllBeginOneAreDividedAsBefore) {
  const ModelConfig config = staged_config(std::vector<LayerConfig>(10));
  const auto stages = divide_layers(config, {1, 4, nullptr, {7}});
  ASSERT_TRUE(stages.ok());
  EXPECT_TRUE(stages.value().begins.empty());
  EXPECT_EQ(sizes_of(config, 4), (Sizes{2, 3, 2, 3}));
}

// The last 15 of 20 layers read what layers 3 and 4 keep.
TEST(Stages, LayersStayWithThoseWhoseKeysTheyRead) {
  std::vector<LayerConfig> layers(20);
  for (size_t i = 5; i < layers.size(); ++i) layers[i].kv_of = i % 2 == 0 ? 4 : 3;
  ModelConfig config = staged_config(layers);
  EXPECT_EQ(max_stages(config), 4);
  EXPECT_EQ(sizes_of(config, 2), (Sizes{3, 17}));
  EXPECT_EQ(sizes_of(config, 3), (Sizes{1, 2, 17}));
  EXPECT_EQ(sizes_of(config, 4), (Sizes{1, 1, 1, 17}));
  EXPECT_FALSE(divide_layers(config, {0, 5}).ok());
  // Pairs that share one layer's keys are cut between them.
  layers.assign(10, {});
  for (int32_t i = 1; i < 10; i += 2) layers[static_cast<size_t>(i)].kv_of = i - 1;
  EXPECT_EQ(sizes_of(staged_config(layers), 2), (Sizes{4, 6}));
  EXPECT_EQ(sizes_of(staged_config(layers), 5), (Sizes{2, 2, 2, 2, 2}));
}

TEST(Stages, LayersThatAreOneInTheFilesAreNotParted) {
  std::vector<LayerConfig> layers(6);
  for (size_t i = 0; i < layers.size(); ++i) layers[i].part = static_cast<int32_t>(i % 2);
  EXPECT_EQ(sizes_of(staged_config(layers), 2), (Sizes{2, 4}));
  EXPECT_EQ(sizes_of(staged_config(layers), 3), (Sizes{2, 2, 2}));
  EXPECT_EQ(max_stages(staged_config(layers)), 3);
}

}  // namespace
}  // namespace foretoken
