#include "model/heads/assistant_config.h"

#include <gtest/gtest.h>

#include <functional>

#include "model/golden.h"
#include "support/scratch_folder.h"

namespace foretoken::test {
namespace {

using Json = nlohmann::json;

ModelConfig target_of(const std::string& name) {
  return read_model_config(golden_folder() + "architectures/" + name, {}).value();
}

Json file_of(const std::string& name) {
  return read_json_file(golden_folder() + "assistants/" + name + "/config.json").value();
}

Result<AssistantConfig> read(const Json& file, const ModelConfig& target) {
  const ScratchFolder folder;
  folder.write("config.json", file.dump());
  return read_assistant_config(folder.path(), target);
}

TEST(AssistantConfig, IsReadBesideItsTarget) {
  const auto dense = read(file_of("dense"), target_of("gemma4-deep")).value();
  EXPECT_EQ(dense.layer.hidden_size, 48);
  ASSERT_EQ(dense.layer.layers.size(), 3u);
  EXPECT_EQ(dense.layer.layers[1].window, 24);
  EXPECT_EQ(dense.layer.layers[2].window, 0);
  for (const LayerConfig& layer : dense.layer.layers) EXPECT_GE(layer.kv_of, 0);
  EXPECT_EQ(dense.clusters, 0);
  const auto ordered = read(file_of("ordered"), target_of("gemma4-large")).value();
  EXPECT_EQ(ordered.clusters, 16);
  EXPECT_EQ(ordered.top, 3);
  EXPECT_TRUE(read(file_of("unified"), target_of("gemma4-unified")).ok());
}

// Of a target whose layers are not known, sizes are compared alone.
TEST(AssistantConfig, IsReadWithoutLayersOfTheTarget) {
  ModelConfig target;
  target.dtype = DType::kBF16;
  target.vocab_size = 128;
  target.hidden_size = 32;
  EXPECT_EQ(read(file_of("dense"), target).value().layer.dtype, DType::kBF16);
}

TEST(AssistantConfig, WhatIsNoPartOfTheTargetIsNamed) {
  const std::pair<std::function<void(Json&)>, const char*> cases[] = {
      {[](Json& file) { file.erase("text_config"); }, "'text_config' is missing"},
      {[](Json& file) { file["text_config"] = 3; }, "'text_config'"},
      {[](Json& file) { file["backbone_hidden_size"] = 64; },
       "backbone_hidden_size 64 of the head is not the target's 32"},
      {[](Json& file) { file["text_config"]["vocab_size"] = 64; }, "vocab_size 64"},
      {[](Json& file) { file["text_config"]["num_key_value_heads"] = 4; },
       "num_key_value_heads 4 of the assistant is not 2"},
      {[](Json& file) { file["text_config"]["global_head_dim"] = 64; },
       "head_dim 64 of the assistant is not 32"},
      {[](Json& file) { file["text_config"]["sliding_window"] = 16; },
       "sliding_window 16 of the assistant is not 24"},
      {[](Json& file) { file["text_config"]["hidden_size_per_layer_input"] = 8; },
       "'hidden_size_per_layer_input'"},
  };
  for (const auto& [change, says] : cases) {
    Json file = file_of("dense");
    change(file);
    const auto config = read(file, target_of("gemma4-deep"));
    ASSERT_FALSE(config.ok()) << says;
    EXPECT_NE(config.status().message().find(says), std::string::npos) << config.status().message();
  }
  const auto config = read(file_of("dense"), target_of("llama"));
  ASSERT_FALSE(config.ok());
}

TEST(AssistantConfig, WrongClustersAreNamed) {
  const std::pair<const char*, int> cases[] = {
      {"num_centroids", 48}, {"num_centroids", 0}, {"centroid_intermediate_top_k", 17}};
  for (const auto& [name, value] : cases) {
    Json file = file_of("ordered");
    file[name] = value;
    const auto config = read(file, target_of("gemma4-large"));
    ASSERT_FALSE(config.ok()) << name;
    EXPECT_NE(config.status().message().find("'" + std::string(name) + "'"), std::string::npos)
        << config.status().message();
  }
}

}  // namespace
}  // namespace foretoken::test
