#include "draft/draft_bounds.h"

#include <gtest/gtest.h>

#include "draft/draft_context.h"

namespace foretoken::test {
namespace {

TEST(DraftBounds, TheLeastLengthCounts) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext made;
  SpeculativeConfig config;
  const DrafterContext context = made.context(config);  // the engine's: 256
  EXPECT_EQ(draft_max_len(context, 100).value(), 100);
  EXPECT_EQ(draft_max_len(context, 1000).value(), 256);
  config.max_model_len = 40;
  EXPECT_EQ(draft_max_len(context, 100).value(), 40);
  EXPECT_EQ(draft_max_len(context, 40).value(), 40);
}

TEST(DraftBounds, MoreThanThereIsIsRefused) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext made;
  SpeculativeConfig config;
  const DrafterContext context = made.context(config);
  config.max_model_len = 101;
  expect_contains(draft_max_len(context, 100).status().message(), "above the drafter's own 100");
  config.max_model_len = 257;
  expect_contains(draft_max_len(context, 1000).status().message(), "above the target's 256");
  config.max_model_len = -1;
  expect_contains(draft_max_len(context, 1000).status().message(), "max_model_len is -1");
}

TEST(DraftBounds, SampleMethods) {
  SpeculativeConfig config;
  EXPECT_FALSE(samples_drafts(config).value());
  config.draft_sample_method = "probabilistic";
  EXPECT_TRUE(samples_drafts(config).value());
  config.draft_sample_method = "gumbel";
  expect_contains(samples_drafts(config).status().message(), "'gumbel'");
}

}  // namespace
}  // namespace foretoken::test
