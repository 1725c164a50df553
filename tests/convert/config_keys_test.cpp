#include "convert/config_keys.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gguf/hf_config.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Json plain_config() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"vocab_size", 8},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 16},
          {"max_position_embeddings", 131072},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 500000.0},
          {"tie_word_embeddings", true}};
}

ModelConfig parsed(const Json& changes) {
  Json config = plain_config();
  config.update(changes);
  const auto result = parse_model_config(config, Json::object(), {}, "config.json");
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.value();
}

// What is read of a file with the keys of `config`.
Json read_back(const ModelConfig& config) {
  GgufKeys keys;
  const GgufArchitecture* architecture = gguf_architecture_for(config.architecture);
  EXPECT_TRUE(add_config_keys(config, *architecture, "x", keys).ok());
  const test::ScratchFolder folder;
  const std::string path = folder.file("keys.gguf");
  const std::vector<GgufTensorEntry> tensors = {{"token_embd.weight", find_block_type(0), {8, 1}}};
  auto writer = GgufWriter::create(path, keys, tensors, true).value();
  EXPECT_TRUE(writer->append(std::vector<std::byte>(32)).ok());
  EXPECT_TRUE(writer->finish().ok());
  const auto file = GgufFile::open(path);
  const auto made = gguf_model_config(*file.value());
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.value();
}

TEST(ConfigKeys, SizesComeBack) {
  const Json back = read_back(parsed(Json::object()));
  const Json wanted = plain_config();
  for (const auto& [key, value] : wanted.items()) {
    if (value.is_number_float()) {
      EXPECT_FLOAT_EQ(back[key].get<float>(), value.get<float>()) << key;
    } else {
      EXPECT_EQ(back[key], value) << key;
    }
  }
  EXPECT_EQ(read_back(parsed({{"architectures", {"Qwen3ForCausalLM"}}}))["architectures"][0],
            "Qwen3ForCausalLM");
}

TEST(ConfigKeys, ScalingsOfPositions) {
  const Json linear = {{"rope_type", "linear"}, {"factor", 4.0}};
  EXPECT_EQ(read_back(parsed({{"rope_scaling", linear}}))["rope_scaling"], linear);
  const Json yarn = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
  EXPECT_EQ(read_back(parsed({{"rope_scaling", yarn}}))["rope_scaling"], yarn);
}

// The ends of the table of Llama 3.1 and a value between, from its published formula in numpy.
TEST(ConfigKeys, DivisorsOfLlama3) {
  EXPECT_TRUE(rope_divisors(parsed(Json::object()).rope.full).empty());
  const Json scaling = {{"rope_type", "llama3"},
                        {"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  const auto divisors =
      rope_divisors(parsed({{"rope_scaling", scaling}, {"head_dim", 128}}).rope.full);
  ASSERT_EQ(divisors.size(), 64u);
  EXPECT_EQ(divisors[0], 1);
  EXPECT_EQ(divisors[28], 1);
  EXPECT_NEAR(divisors[30], 1.5534146, 1e-5);
  EXPECT_NEAR(divisors[34], 5.2573266, 1e-5);
  EXPECT_EQ(divisors[40], 8);
  EXPECT_EQ(divisors[63], 8);
}

TEST(ConfigKeys, NamesWhatCannotBeSaid) {
  GgufKeys keys;
  const std::pair<Json, const char*> cases[] = {
      {{{"architectures", {"MistralForCausalLM"}}, {"sliding_window", 4096}}, "sliding window"},
      {{{"hidden_act", "gelu"}}, "SiLU"},
      {{{"mlp_bias", true}}, "biases of the MLP"},
      {{{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}}, "rotary"},
      {{{"partial_rotary_factor", 0.5}}, "whole heads"},
      {{{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}, {"beta_fast", 16}}}}, "yarn"}};
  for (const auto& [changes, wanted] : cases) {
    const Status status =
        add_config_keys(parsed(changes), *gguf_architecture_for("LlamaForCausalLM"), "here", keys);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << changes;
    EXPECT_NE(status.message().find(wanted), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find("here"), 0u);
  }
}

}  // namespace
}  // namespace foretoken
