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

Sharding sharing(int size, int context) {
  return {.rank = 0, .size = size, .context = {.size = context}};
}

// Only ranks with the same heads of keys and values can have a part of the positions each.
TEST(Sharding, RanksWithTheSameKeysShareAContext) {
  EXPECT_TRUE(can_share_context(config_of(8, 1, 512), sharing(4, 4)));
  EXPECT_TRUE(can_share_context(config_of(8, 2, 512), sharing(4, 2)));
  EXPECT_FALSE(can_share_context(config_of(8, 2, 512), sharing(4, 4)));
  EXPECT_FALSE(can_share_context(config_of(8, 4, 512), sharing(4, 2)));
  EXPECT_TRUE(can_share_context(config_of(8, 8, 512), sharing(4, 1)));
  EXPECT_TRUE(shard_config(config_of(8, 1, 512), sharing(4, 4)).ok());
  EXPECT_EQ(sharding_of_drafter(config_of(8, 4, 512), sharing(4, 2)).context.size, 1);
  EXPECT_EQ(sharding_of_drafter(config_of(8, 2, 512), sharing(4, 2)).context.size, 2);
  ModelConfig uneven = config_of(8, 1, 512);
  uneven.layers.resize(2);
  uneven.layers[1].num_kv_heads = 2;
  EXPECT_EQ(kv_heads_of(uneven), (std::vector<int>{1, 2}));
  EXPECT_TRUE(can_share_context(uneven, sharing(4, 2)));
  EXPECT_FALSE(can_share_context(uneven, sharing(4, 4)));
  ModelConfig narrow = config_of(8, 1, 512);
  narrow.hidden_size = 66;
  EXPECT_FALSE(can_share_context(narrow, sharing(4, 2))) << "half a row is no whole words";
  EXPECT_EQ(sharding_of_drafter(narrow, sharing(4, 2)).context.size, 1);
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

// Heads that leave their values together (DeepSeek V4).
TEST(Sharding, GroupsOfHeadsStayTogether) {
  ModelConfig config = config_of(8, 1, 512);
  config.compressed.q_rank = 32;
  config.compressed.groups = 2;
  EXPECT_EQ(shard_config(config, {.rank = 1, .size = 2}).value().compressed.groups, 1);
  const std::string message = shard_config(config, {.rank = 0, .size = 4}).status().message();
  EXPECT_NE(message.find("2 groups of heads (o_groups); use 1 or 2"), std::string::npos) << message;
}

ModelConfig mixture_of(int experts, int inner) {
  ModelConfig config = config_of(8, 8, 512);
  config.experts.count = experts;
  config.experts.inner = inner;
  config.experts.shared_inner = 64;
  return config;
}

Sharding dealt(int rank, int size) { return {.rank = rank, .size = size, .experts = {rank, size}}; }

// Experts that are dealt out stay whole, however narrow; what is shared is still cut.
TEST(Sharding, DealtExpertsStayWhole) {
  const ModelConfig part = shard_config(mixture_of(6, 32), dealt(1, 4)).value();
  EXPECT_EQ(part.experts.count, 6);
  EXPECT_EQ(part.experts.inner, 32);
  EXPECT_EQ(part.experts.shared_inner, 16);
  EXPECT_EQ(part.num_heads, 2);
  ModelConfig odd = mixture_of(6, 32);
  odd.experts.shared_inner = 6;
  const std::string message = shard_config(odd, dealt(0, 4)).status().message();
  EXPECT_NE(message.find("6 of the shared expert; use 1 or 2"), std::string::npos) << message;
}

// Also an odd number of them: every expert lies on one rank.
TEST(Sharding, EveryExpertIsDealtOnce) {
  for (const int experts : {4, 5, 7, 64}) {
    for (const int size : {1, 2, 3, 4}) {
      int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const ShardRange own = shard_of_experts(experts, dealt(rank, size));
        EXPECT_EQ(own.begin, next);
        EXPECT_GE(own.count, experts / size);
        EXPECT_LE(own.count, experts / size + 1);
        next += own.count;
      }
      EXPECT_EQ(next, experts);
    }
  }
  EXPECT_EQ(shard_of_experts(8, {.rank = 1, .size = 2}).count, 8);
}

TEST(Sharding, RanksWithoutExpertsAreRefused) {
  const std::string message = shard_config(mixture_of(3, 32), dealt(0, 4)).status().message();
  for (const char* said : {"has 3 experts", "4 ranks", "at most 3"}) {
    EXPECT_NE(message.find(said), std::string::npos) << message;
  }
}

TEST(Sharding, OneRankHasEverything) {
  EXPECT_EQ(shard_config(config_of(7, 7, 5), {}).value().num_heads, 7);
}

}  // namespace
}  // namespace foretoken
