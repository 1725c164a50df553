#include "model/weights/sharding.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

ModelConfig config_of(int heads, int kv_heads, int inner) {
  ModelConfig config;
  config.architecture = "LlamaForCausalLM";
  config.num_heads = heads;
  config.num_kv_heads = kv_heads;
  config.intermediate_size = inner;
  config.hidden_size = 64;
  config.vocab_size = 1000;
  return config;
}

TEST(Sharding, DividesHeadsAndInnerColumns) {
  const ModelConfig part = shard_config(config_of(8, 4, 512), {.rank = 1, .size = 2}).value();
  EXPECT_EQ(part.num_heads, 4);
  EXPECT_EQ(part.num_kv_heads, 2);
  EXPECT_EQ(part.intermediate_size, 256);
  EXPECT_EQ(part.hidden_size, 64);
  EXPECT_EQ(part.vocab_size, 1000);
}

TEST(Sharding, RanksShareAHeadOfKeysWhereThereAreFewer) {
  const ModelConfig config = config_of(8, 2, 512);
  EXPECT_EQ(shard_config(config, {.rank = 0, .size = 4}).value().num_kv_heads, 1);
  for (int rank = 0; rank < 4; ++rank) {
    const ShardRange heads = shard_of_kv_heads(2, {.rank = rank, .size = 4});
    EXPECT_EQ(heads.begin, rank / 2);
    EXPECT_EQ(heads.count, 1);
  }
  EXPECT_EQ(shard_of(8, {.rank = 3, .size = 4}).begin, 6);
}

TEST(Sharding, SizesThatDoNotDivideAreNamedWithThoseThatDo) {
  const auto part = shard_config(config_of(12, 4, 512), {.rank = 0, .size = 3});
  ASSERT_FALSE(part.ok());
  const std::string& message = part.status().message();
  for (const char* said : {"--tensor-parallel-size 3", "12 heads", "use 1, 2 or 4"}) {
    EXPECT_NE(message.find(said), std::string::npos) << message;
  }
}

TEST(Sharding, ExpertsAreCutInWholeSlices) {
  ModelConfig config = config_of(8, 8, 512);
  config.experts.count = 16;
  config.experts.inner = 192;
  config.experts.shared_inner = 64;
  const ModelConfig part = shard_config(config, {.rank = 1, .size = 2}).value();
  EXPECT_EQ(part.experts.inner, 96);
  EXPECT_EQ(part.experts.shared_inner, 32);
  const auto four = shard_config(config, {.rank = 0, .size = 4});
  ASSERT_FALSE(four.ok());
  const std::string& message = four.status().message();
  for (const char* said : {"192 inner columns of each expert", "a multiple of 32",
                           "64 of the shared one", "use 1 or 2"}) {
    EXPECT_NE(message.find(said), std::string::npos) << message;
  }
}

TEST(Sharding, OneRankHasEverything) {
  EXPECT_EQ(shard_config(config_of(7, 7, 5), {}).value().num_heads, 7);
}

}  // namespace
}  // namespace foretoken
