#include "gguf/mistral_params.h"

#include <gtest/gtest.h>

#include "gguf/model_texts.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

constexpr const char* kMistralParams =
    R"({"dim": 64, "n_layers": 2, "head_dim": 16, "hidden_dim": 128, "n_heads": 4, "n_kv_heads": 2,
        "norm_eps": 1e-5, "vocab_size": 300, "rope_theta": 1000000.0, "moe": null, "causal": true})";

TEST(MistralParams, AreAConfigOfTransformers) {
  const test::ScratchFolder folder;
  folder.write("params.json", kMistralParams);
  EXPECT_FALSE(has_mistral_params(folder.path()));
  folder.write("consolidated.safetensors", "x");
  EXPECT_TRUE(has_mistral_params(folder.path()));
  EXPECT_TRUE(has_model_text(folder.path(), "config.json"));
  const auto text = read_model_text(folder.path(), "config.json").value();
  ASSERT_TRUE(text.has_value());
  const auto config = nlohmann::json::parse(*text);
  EXPECT_EQ(config["architectures"][0], "MistralForCausalLM");
  EXPECT_EQ(config["hidden_size"], 64);
  EXPECT_EQ(config["intermediate_size"], 128);
  EXPECT_EQ(config["num_key_value_heads"], 2);
  EXPECT_EQ(config["rope_theta"], 1000000.0);
  EXPECT_EQ(config["max_position_embeddings"], 32768);
  EXPECT_FALSE(config.contains("causal"));
  folder.write("config.json", "{}");
  EXPECT_FALSE(has_mistral_params(folder.path()));
}

TEST(MistralParams, WhatIsNoDenseTextModelIsNamed) {
  const test::ScratchFolder folder;
  for (const char* field : {"moe", "vision_encoder", "quantization", "yarn", "q_lora_rank"}) {
    nlohmann::json params = nlohmann::json::parse(kMistralParams);
    params[field] = {{"x", 1}};
    folder.write("params.json", params.dump());
    const Status status = mistral_config(folder.path()).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << field;
    EXPECT_NE(status.message().find("'" + std::string(field) + "' is not read in Mistral's own"),
              std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace foretoken
