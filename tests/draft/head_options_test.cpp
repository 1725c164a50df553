#include "draft/head_options.h"

#include <gtest/gtest.h>

#include "draft/draft_context.h"

namespace foretoken::test {
namespace {

TEST(HeadOptions, AreWhatTheContextSays) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext made;
  SpeculativeConfig config;
  DrafterContext context = made.context(config, true);
  context.draft_vocab_ids = {3, 5};
  context.rounding = WeightRounding::kFp8;
  context.sharding = {.rank = 1, .size = 2};
  const DraftHeadOptions options = head_options(context, 100, {.of_pass = 12, .of_logits = 4});
  EXPECT_EQ(options.max_model_len, 100);
  EXPECT_EQ(options.max_rows, 12);
  EXPECT_EQ(options.max_logits_rows, 4);
  EXPECT_EQ(options.attention, context.attention);
  EXPECT_TRUE(options.dummy);
  EXPECT_EQ(options.rounding, WeightRounding::kNone) << "the target's is not a head's own";
  EXPECT_EQ(options.vocab_ids, context.draft_vocab_ids);
  EXPECT_EQ(options.target_folder, made.target_folder());
  EXPECT_EQ(options.sharding.size, 2);
  EXPECT_EQ(options.sharding.rank, 1);
}

}  // namespace
}  // namespace foretoken::test
