#include "serve/fields/pooler_config.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

PoolerConfig read_pooler(const std::string& text) {
  const Result<PoolerConfig> config = read_pooler_config(text, "--pooler-config");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? config.value() : PoolerConfig();
}

TEST(PoolerConfig, SaysHowEmbeddingsAreMade) {
  const PoolerConfig mean = read_pooler(R"({"pooling_type": "MEAN", "normalize": false})");
  EXPECT_EQ(mean.pooling, Pooling::kMean);
  EXPECT_EQ(mean.normalize, false);
  const PoolerConfig cls =
      read_pooler(R"({"task": "embed", "seq_pooling_type": "CLS", "use_activation": true})");
  EXPECT_EQ(cls.pooling, Pooling::kCls);
  EXPECT_EQ(cls.normalize, true);
  for (const char* nothing : {"", "{}", "None", R"({"pooling_type": null})"}) {
    const PoolerConfig none = read_pooler(nothing);
    EXPECT_FALSE(none.pooling || none.normalize) << nothing;
  }
}

TEST(PoolerConfig, WhatThereIsNotIsNamed) {
  EXPECT_EQ(read_pooler_config(R"({"pooling_type": "STEP"})", "--pooler-config").status().message(),
            "--pooler-config: pooling_type STEP is not built; use LAST, MEAN or CLS");
  EXPECT_FALSE(read_pooler_config("{", "--pooler-config").ok());
  EXPECT_FALSE(read_pooler_config(R"({"normalize": "much"})", "--pooler-config").ok());
}

}  // namespace
}  // namespace foretoken
