#include "dialled/dialled_parts.h"

#include <gtest/gtest.h>

#include <set>

#include "model/registry.h"

namespace foretoken {
namespace {

ModelConfig parse(const DialledShape& shape) {
  const nlohmann::json json(dialled_config(shape));
  return parse_model_config(json, nlohmann::json::object(), {}, "dialled").value();
}

TEST(DialledParts, WhatIsSpecialIsSwitchedOn) {
  std::set<std::string> windowed, without_rope;
  for (const std::string& name : dialled_architectures()) {
    DialledShape shape;
    shape.architecture = name;
    const ModelConfig config = parse(shape);
    EXPECT_EQ(config.architecture, name);
    EXPECT_FALSE(config.tie_word_embeddings);
    for (const LayerConfig& layer : config.layers) {
      if (layer.window == kDialledWindow) windowed.insert(name);
      if (!layer.rope) without_rope.insert(name);
    }
  }
  EXPECT_EQ(windowed, (std::set<std::string>{"Gemma2ForCausalLM", "Gemma3ForCausalLM",
                                             "Gemma3ForConditionalGeneration", "GptOssForCausalLM",
                                             "MistralForCausalLM", "Qwen2ForCausalLM"}));
  EXPECT_EQ(without_rope, std::set<std::string>{"SmolLM3ForCausalLM"});
}

TEST(DialledParts, TensorsHaveDifferentNames) {
  for (const std::string& name : dialled_architectures()) {
    DialledShape shape;
    shape.architecture = name;
    const auto tensors = dialled_tensors(shape, parse(shape), find_architecture(name)->decoder);
    std::set<std::string> names;
    for (const TensorToWrite& tensor : tensors) EXPECT_TRUE(names.insert(tensor.name).second);
    EXPECT_GT(names.size(), 10u);
  }
}

}  // namespace
}  // namespace foretoken
