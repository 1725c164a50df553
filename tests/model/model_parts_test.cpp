#include "model/model_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "model/golden.h"
#include "model/registry.h"

namespace foretoken {
namespace {

ModelConfig config_of_layers(std::vector<LayerConfig> layers) {
  ModelConfig config;
  config.architecture = "TestForCausalLM";
  config.num_heads = config.num_kv_heads = 2;
  config.head_dim = 16;
  config.max_context = 100;
  config.layers = std::move(layers);
  return config;
}

std::string said_of(const ModelConfig& config, const LoadOptions& options) {
  return check_division(config, options).message();
}

std::string in_stages(const ModelConfig& config) {
  LoadOptions options;
  options.stages.count = 2;
  return said_of(config, options);
}

std::string in_lanes(const ModelConfig& config) {
  LoadOptions options;
  const Sharding second;
  options.second_lane = &second;
  return said_of(config, options);
}

std::string among_ranks(const ModelConfig& config, int context) {
  LoadOptions options;
  options.sharding = {.rank = 0, .size = 2, .context = {.size = context}};
  return said_of(config, options);
}

// Stages are cut where no layer reads keys of another stage, and no shortcut leads over.
TEST(ModelParts, LayersThatStayInOneStageLimitTheStages) {
  ModelConfig config = config_of_layers({{}, {}, {}, {}});
  EXPECT_EQ(in_stages(config) + in_lanes(config), "");
  config.layers[3].kv_of = 0;
  EXPECT_EQ(in_lanes(config), "") << "keys are the lane's own";
  EXPECT_NE(in_stages(config).find("at most 1 stage; use --pipeline-parallel-size 1 and divide"),
            std::string::npos)
      << in_stages(config);
  config.layers[3].kv_of = 2;
  EXPECT_EQ(in_stages(config), "");
  config.layers = {{}, {}};
  config.layers[1].part = 1;
  EXPECT_NE(in_stages(config).find("at most 1 stage"), std::string::npos);
}

TEST(ModelParts, WhatRowsHaveBesideTheResidualGoesWithThem) {
  ModelConfig config = config_of_layers({{}, {}});
  config.layer_input_size = 4;
  config.depth_block = 2;
  config.streams.count = 2;
  config.layers[1].shares_index = true;
  config.latent.index.top = 5;
  EXPECT_EQ(in_stages(config) + in_lanes(config), "");
}

// Told from the layers as the architecture composes them, before anything is loaded.
TEST(ModelParts, RanksDivideHeadsThatTakeTurns) {
  ModelConfig linear = config_of_layers({{}});
  linear.architecture = "Qwen3NextForCausalLM";
  linear.layers[0].recurrent = true;
  linear.recurrent.key_heads = 2;
  linear.recurrent.value_heads = 4;
  linear.recurrent.key_dim = linear.recurrent.value_dim = 8;
  EXPECT_EQ(among_ranks(linear, 1), "");
  linear.recurrent.tiled = true;
  EXPECT_EQ(among_ranks(linear, 1), "");
}

// The queries of two ranks read each of two heads; before anything is loaded.
TEST(ModelParts, RanksShareAContextWhereTheyHaveTheSameKeys) {
  ModelConfig config = config_of_layers({{}, {}});
  config.architecture = "LlamaForCausalLM";
  config.num_heads = 8;
  config.num_kv_heads = 1;
  config.hidden_size = 64;
  EXPECT_EQ(among_ranks(config, 2), "");
  config.alibi_slopes.assign(8, 0.5f);
  EXPECT_EQ(among_ranks(config, 2), "") << "ALiBi";
  config.layers[1].num_kv_heads = 2;
  EXPECT_NE(among_ranks(config, 2).find("so that no two of 2"), std::string::npos)
      << among_ranks(config, 2);
  config.layers[1].num_kv_heads = 0;
  config.hidden_size = 66;
  EXPECT_NE(among_ranks(config, 2).find("66, the hidden size of Llama"), std::string::npos);
  EXPECT_EQ(among_ranks(config, 1), "");
}

TEST(ModelParts, EnginesShareExpertsThatLeaveRowsAsTheyAre) {
  ModelConfig config = config_of_layers({{}});
  config.architecture = "LongcatFlashForCausalLM";
  config.experts.count = 4;
  config.experts.zero_count = 2;
  config.layers[0].experts = true;
  LoadOptions options;
  options.sharding.experts = {.rank = 0, .size = 4};
  EXPECT_EQ(said_of(config, options), "") << "the ranks of one engine";
  options.sharding.experts.num_engines = 4;
  EXPECT_EQ(said_of(config, options), "");
}

TEST(ModelParts, LayersOfModulesAreTold) {
  Combination c;
  ModelConfig config = config_of_layers({{}});
  add_model(config, 0, 0, &c);
  EXPECT_FALSE(c.modules_windowed.is_known()) << "the decoder's layer is theirs";
  config.architecture = "MiMoV2FlashForCausalLM";
  add_model(config, 0, 0, &c);
  EXPECT_TRUE(c.modules_windowed);
}

TEST(ModelParts, ModelsWithoutAttentionAreTold) {
  for (const auto& [name, attends] : {std::pair{"rwkv7", false}, std::pair{"mamba", false},
                                      std::pair{"jamba", true}, std::pair{"deepseek_v2", true}}) {
    const auto config = read_model_config(test::golden_folder() + "architectures/" + name, {});
    ASSERT_TRUE(config.ok()) << config.status().message();
    Combination c;
    add_model(config.value(), 0, 16, &c);
    EXPECT_EQ(static_cast<bool>(c.attends), attends) << name;
    EXPECT_EQ(c.attends.is_false(), !attends) << name;
  }
}

TEST(ModelParts, WindowsAreTold) {
  Combination c;
  add_model(config_of_layers({{64, true}, {0, true}}), 0, 16, &c);
  EXPECT_TRUE(c.has_windows && c.model->has_full_layers);
  add_model(config_of_layers({{}}), -1, 16, &c);
  EXPECT_TRUE(c.has_windows.is_false());
  EXPECT_EQ(c.model->block_size, 16);
  EXPECT_TRUE(c.latent.is_false() && c.chooses_blocks.is_false());
  EXPECT_EQ(c.num_experts, 0);
  EXPECT_FALSE(c.chosen_positions.has_value());
}

TEST(ModelParts, BlocksThatAnIndexerChoosesHaveTheirPositions) {
  ModelConfig config = config_of_layers({{}});
  config.block_index = {.head_dim = 16, .block = 128, .top = 4};
  Combination c;
  add_model(config, 0, 16, &c);
  EXPECT_TRUE(c.chooses_blocks);
  EXPECT_EQ(c.chosen_positions, 128);
}

}  // namespace
}  // namespace foretoken
