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

}  // namespace
}  // namespace foretoken
