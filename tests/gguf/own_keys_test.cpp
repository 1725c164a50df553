#include "gguf/own_keys.h"

#include <gtest/gtest.h>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

// tests/model/gguf_families_test.cpp holds whole files against folders; here stand single keys.

TEST(OwnKeys, FalconsOfOneKeyHeadAreTheOlderOnes) {
  const test::ScratchFolder folder;
  const auto file = GgufFile::open(test::GgufBytes(0, 1)
                                       .text_value("general.architecture", "falcon")
                                       .align()
                                       .write(folder.file("a.gguf")))
                        .value();
  nlohmann::json config = {
      {"num_key_value_heads", 1}, {"intermediate_size", 48}, {"attention_bias", false}};
  ASSERT_TRUE(read_falcon_file(*file, config).ok());
  EXPECT_EQ(config["new_decoder_architecture"], false);
  EXPECT_EQ(config["multi_query"], true);
  EXPECT_EQ(config["num_ln_in_parallel_attn"], 1);
  config["num_key_value_heads"] = 8;
  ASSERT_TRUE(read_falcon_file(*file, config).ok());
  EXPECT_EQ(config["new_decoder_architecture"], true);
  EXPECT_EQ(config["num_kv_heads"], 8);
}

TEST(OwnKeys, Gemma3nNamesATensorThatIsMissing) {
  const test::ScratchFolder folder;
  const auto file = GgufFile::open(test::GgufBytes(0, 1)
                                       .text_value("general.architecture", "gemma3n")
                                       .align()
                                       .write(folder.file("a.gguf")))
                        .value();
  nlohmann::json config;
  const Status status = read_gemma3n_file(*file, config);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("per_layer_token_embd.weight"), std::string::npos);
}

// llama.cpp's converter writes those of MiMo V2 as numbers.
TEST(OwnKeys, WindowsMayBeNumbers) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes(0, 2);
  bytes.text_value("general.architecture", "mimo2")
      .key("mimo2.attention.sliding_window_pattern", 9)
      .number(uint32_t{5})
      .number(uint64_t{2});
  for (const int32_t windowed : {0, 1}) bytes.number(windowed);
  const auto file = GgufFile::open(bytes.align().write(folder.file("a.gguf"))).value();
  nlohmann::json config;
  read_layer_types(*file, "mimo2", config);
  EXPECT_EQ(config["layer_types"], nlohmann::json({"full_attention", "sliding_attention"}));
}

TEST(OwnKeys, Gemma4sLayersWithoutAWindowHaveHeadsOfTheirOwn) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes(0, 5);
  bytes.text_value("general.architecture", "gemma4")
      .u32_value("gemma4.attention.key_length_swa", 16)
      .u32_value("gemma4.attention.shared_kv_layers", 1)
      .f32_value("gemma4.rope.freq_base_swa", 5000.0f)
      .key("gemma4.attention.sliding_window_pattern", 9)
      .number(uint32_t{7})
      .number(uint64_t{3});
  for (const uint8_t windowed : {1, 0, 1}) bytes.number(windowed);
  const auto file = GgufFile::open(bytes.align().write(folder.file("a.gguf"))).value();
  nlohmann::json config = {
      {"num_key_value_heads", {4, 2, 4}}, {"intermediate_size", {48, 48, 96}}, {"head_dim", 32}};
  read_layer_types(*file, "gemma4", config);
  EXPECT_EQ(config["layer_types"],
            nlohmann::json({"sliding_attention", "full_attention", "sliding_attention"}));
  ASSERT_TRUE(read_gemma4_file(*file, config).ok());
  EXPECT_EQ(config["head_dim"], 16);
  EXPECT_EQ(config["global_head_dim"], 32);
  EXPECT_EQ(config["num_key_value_heads"], 4);
  EXPECT_EQ(config["num_global_key_value_heads"], 2);
  EXPECT_EQ(config["attention_k_eq_v"], true);
  EXPECT_EQ(config["intermediate_size"], 48);
  EXPECT_EQ(config["use_double_wide_mlp"], true);
  EXPECT_EQ(config["num_kv_shared_layers"], 1);
  EXPECT_EQ(config["hidden_size_per_layer_input"], 0);
  EXPECT_EQ(config["enable_moe_block"], false);
  EXPECT_EQ(config["rope_parameters"]["sliding_attention"]["rope_theta"], 5000.0);
}

// One list of integers behind its key.
test::GgufBytes& add_list(test::GgufBytes& bytes, const std::string& key,
                          std::initializer_list<int32_t> values) {
  bytes.key(key, 9).number(uint32_t{5}).number(uint64_t{values.size()});
  for (const int32_t value : values) bytes.number(value);
  return bytes;
}

// Of four layers the first has no window, unless the file says another period; yarn is theirs.
TEST(OwnKeys, LagunasLayersDifferInHeadsWindowsAndTurns) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes(0, 8);
  bytes.text_value("general.architecture", "laguna")
      .u32_value("laguna.leading_dense_block_count", 2)
      .u32_value("laguna.rope.dimension_count", 8)
      .f32_value("laguna.rope.freq_base_swa", 1000.0f)
      .text_value("laguna.rope.scaling.type", "yarn")
      .f32_value("laguna.rope.scaling.factor", 8.0f)
      .f32_value("laguna.rope.scaling.yarn_attn_factor", 1.5f);
  add_list(bytes, "laguna.attention.head_count", {4, 6, 6, 6, 4});
  const auto file = GgufFile::open(bytes.align().write(folder.file("a.gguf"))).value();
  nlohmann::json config = {{"num_attention_heads", 6},
                           {"num_hidden_layers", 5},
                           {"head_dim", 16},
                           {"sliding_window", 24}};
  ASSERT_TRUE(read_laguna_file(*file, config).ok());
  EXPECT_EQ(config["num_attention_heads_per_layer"], nlohmann::json({4, 6, 6, 6, 4}));
  EXPECT_EQ(config["mlp_only_layers"], nlohmann::json({0, 1}));
  EXPECT_EQ(config["layer_types"],
            nlohmann::json({"full_attention", "sliding_attention", "sliding_attention",
                            "sliding_attention", "full_attention"}));
  const nlohmann::json full = config["rope_parameters"]["full_attention"];
  EXPECT_EQ(full["rope_type"], "yarn");
  EXPECT_EQ(full["attention_factor"], 1.5);
  EXPECT_EQ(static_cast<int>(full["partial_rotary_factor"].get<double>() * 16), 8);
  EXPECT_EQ(config["rope_parameters"]["sliding_attention"]["rope_theta"], 1000.0);
}

// Layers of modules are no layers of the model; half of a head turns where there is no window.
TEST(OwnKeys, StepsLayersWithAWindowHaveHeadsOfTheirOwn) {
  const test::ScratchFolder folder;
  test::GgufBytes bytes(0, 3);
  bytes.text_value("general.architecture", "step35").u32_value("step35.nextn_predict_layers", 1);
  add_list(bytes, "step35.attention.head_count", {4, 6, 4, 4});
  const auto file = GgufFile::open(bytes.align().write(folder.file("a.gguf"))).value();
  nlohmann::json config = {
      {"num_attention_heads", 6},
      {"num_key_value_heads", {2, 3, 2, 2}},
      {"num_hidden_layers", 4},
      {"head_dim", 16},
      {"max_position_embeddings", 512},
      {"layer_types", {"full_attention", "sliding_attention", "full_attention", "full_attention"}}};
  ASSERT_TRUE(read_step35_file(*file, config).ok());
  EXPECT_EQ(config["num_hidden_layers"], 3);
  EXPECT_EQ(config["num_attention_heads"], 4);
  EXPECT_EQ(config["num_key_value_heads"], 2);
  EXPECT_EQ(config["attention_other_setting"]["num_attention_heads"], 6);
  EXPECT_EQ(config["attention_other_setting"]["num_attention_groups"], 3);
  EXPECT_EQ(config["use_head_wise_attn_gate"], false);
  const nlohmann::json full = config["rope_parameters"]["full_attention"];
  EXPECT_EQ(static_cast<int>(full["partial_rotary_factor"].get<double>() * 16), 8);
}

}  // namespace
}  // namespace foretoken
