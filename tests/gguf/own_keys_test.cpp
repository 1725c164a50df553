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

}  // namespace
}  // namespace foretoken
