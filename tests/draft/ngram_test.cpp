#include "draft/ngram.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "kernels/draft/ngram.h"
#include "support/op_queue.h"

namespace foretoken::test {
namespace {

SpeculativeConfig config_of(int num_draft_tokens, int min_n, int max_n) {
  SpeculativeConfig config;
  config.method = "ngram";
  config.num_speculative_tokens = num_draft_tokens;
  config.prompt_lookup_min = min_n;
  config.prompt_lookup_max = max_n;
  return config;
}

NgramArgs proposed_with(const SpeculativeConfig& config) {
  const auto look_up = ngram_look_up(config);
  EXPECT_TRUE(look_up.ok()) << look_up.status().message();
  ArgsQueue<NgramArgs> queue;
  if (!look_up.ok()) return queue.last;
  DraftStep step;
  int32_t plan = 0;
  SlotState slot{};
  step.plan = &plan;
  step.limits = {.max_spans = 3, .max_tokens = 4, .max_block_updates = 5, .max_words = 6};
  step.batch.slots = &slot;
  SlotParams params{};
  step.batch.params = &params;
  step.batch.block_size = 16;
  step.index = 2;
  const int passes = config.num_speculative_tokens;
  look_up.value()(queue, step, {.num_draft_tokens = passes});
  EXPECT_EQ(queue.last.drafter, 2);
  EXPECT_EQ(queue.num_ops, 1);
  EXPECT_EQ(queue.last.plan, &plan);
  EXPECT_EQ(queue.last.batch.slots, &slot);
  EXPECT_EQ(queue.last.limits.max_spans, 3);
  return queue.last;
}

TEST(Ngram, ProposesWithItsBounds) {
  const NgramArgs args = proposed_with(config_of(4, 2, 6));
  EXPECT_EQ(args.num_draft_tokens, 4);
  EXPECT_EQ(args.min_n, 2);
  EXPECT_EQ(args.max_n, 6);
}

TEST(Ngram, UnsetBoundsFollowTheOtherOrFive) {
  const NgramArgs none = proposed_with(config_of(1, 0, 0));
  EXPECT_EQ(none.min_n, 5);
  EXPECT_EQ(none.max_n, 5);
  const NgramArgs only_max = proposed_with(config_of(1, 0, 7));
  EXPECT_EQ(only_max.min_n, 7);
  EXPECT_EQ(only_max.max_n, 7);
  const NgramArgs only_min = proposed_with(config_of(1, 2, 0));
  EXPECT_EQ(only_min.min_n, 2);
  EXPECT_EQ(only_min.max_n, 2);
}

TEST(Ngram, RefusesBoundsOutOfOrder) {
  for (const auto& [low, high] : {std::pair{3, 2}, {-1, 2}, {1, 65}, {-2, -1}, {65, 0}}) {
    const auto look_up = ngram_look_up(config_of(4, low, high));
    EXPECT_EQ(look_up.status().code(), StatusCode::kInvalidArgument) << low << " " << high;
    EXPECT_NE(look_up.status().message().find("1 <= min <= max <= 64"), std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken::test
