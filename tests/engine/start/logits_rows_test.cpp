#include "engine/start/logits_rows.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(LogitsRows, EverySequenceWithItsDraftsButNoMoreThanAStep) {
  EngineConfig config;
  config.max_num_batched_tokens = 2048;
  config.max_num_seqs = 32;
  EXPECT_EQ(max_logits_rows(config), 32);
  EXPECT_EQ(logits_tile(config), 32);
  config.speculative.resize(1);
  config.speculative[0].num_speculative_tokens = 9;
  EXPECT_EQ(max_logits_rows(config), 320);
  EXPECT_EQ(logits_tile(config), 256);
  config.max_num_batched_tokens = 100;
  EXPECT_EQ(max_logits_rows(config), 100);
  EXPECT_EQ(logits_tile(config), 100);
}

}  // namespace
}  // namespace foretoken
