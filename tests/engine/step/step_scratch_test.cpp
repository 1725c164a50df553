#include "engine/step/step_scratch.h"

#include <gtest/gtest.h>

#include "support/test_device.h"

namespace foretoken {
namespace {

constexpr StepScratchConfig kScratchConfig{.vocab_size = 40,
                                           .logits_tile = 8,
                                           .max_processor_rows = 3,
                                           .max_len = 20,
                                           .num_slots = 2,
                                           .hidden_size = 16,
                                           .with_logprobs = true};

TEST(StepScratch, HasACallForEveryNumberOfRows) {
  StepScratch scratch(*test_device(), kScratchConfig);
  ASSERT_TRUE(scratch.take().ok());
  EXPECT_NE(scratch.logits, nullptr);
  EXPECT_NE(scratch.raw, nullptr);
  EXPECT_NE(scratch.seen, nullptr);
  EXPECT_NE(scratch.accumulators, nullptr);
  for (int rows = 1; rows <= 3; ++rows) {
    EXPECT_EQ(scratch.processor_call(rows)->max_rows, rows);
    EXPECT_EQ(scratch.processor_call(rows)->host.logits, scratch.host.logits);
    EXPECT_EQ(scratch.processor_call(rows)->vocab, 40);
  }
  EXPECT_GT(scratch.num_bytes(), 2 * 8 * 40 * 4);
  EXPECT_GT(StepScratch::device_bytes(kScratchConfig), 2 * 8 * 40 * 4);
  EXPECT_LT(StepScratch::device_bytes(kScratchConfig), scratch.num_bytes());
}

TEST(StepScratch, TakesNothingWhereNothingIsSampled) {
  StepScratchConfig config = kScratchConfig;
  config.logits_tile = 0;
  StepScratch scratch(*test_device(), config);
  ASSERT_TRUE(scratch.take().ok());
  EXPECT_EQ(scratch.num_bytes(), 0);
  EXPECT_EQ(StepScratch::device_bytes(config), 0);
}

TEST(StepScratch, TakesOnlyWhatIsWanted) {
  StepScratchConfig config = kScratchConfig;
  config.with_logprobs = false;
  config.max_processor_rows = 0;
  StepScratch bare(*test_device(), config);
  ASSERT_TRUE(bare.take().ok());
  EXPECT_EQ(bare.raw, nullptr);
  EXPECT_EQ(bare.host.logits, nullptr);
}

}  // namespace
}  // namespace foretoken
