#include "draft/ngram.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "draft/draft_context.h"
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

Result<std::unique_ptr<Drafter>> make(const SpeculativeConfig& config) {
  static const DraftContext context;
  return make_ngram_drafter(context.context(config));
}

NgramArgs proposed_with(const SpeculativeConfig& config) {
  const auto drafter = make(config);
  EXPECT_TRUE(drafter.ok()) << drafter.status().message();
  ArgsQueue<NgramArgs> queue;
  if (!drafter.ok()) return queue.last;
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
  drafter.value()->propose(queue, step, {.num_draft_tokens = passes});
  EXPECT_EQ(queue.last.drafter, 2);
  EXPECT_EQ(queue.num_ops, 1);
  EXPECT_EQ(queue.last.plan, &plan);
  EXPECT_EQ(queue.last.batch.slots, &slot);
  EXPECT_EQ(queue.last.limits.max_spans, 3);
  return queue.last;
}

TEST(NgramDrafter, ProposesWithItsBounds) {
  const NgramArgs args = proposed_with(config_of(4, 2, 6));
  EXPECT_EQ(args.num_draft_tokens, 4);
  EXPECT_EQ(args.min_n, 2);
  EXPECT_EQ(args.max_n, 6);
}

TEST(NgramDrafter, UnsetBoundsFollowTheOtherOrFive) {
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

TEST(NgramDrafter, NeedsNoMemoryOfItsOwn) {
  const auto drafter = make(config_of(16, 1, 4));
  EXPECT_EQ(drafter.value()->memory_bytes(), 0);
  EXPECT_EQ(drafter.value()->bytes_per_block(16), 0);
  EXPECT_TRUE(drafter.value()->take_memory(100, 16).ok());
  EXPECT_EQ(drafter.value()->kv_cache(), nullptr);
}

TEST(NgramDrafter, RefusesBoundsOutOfOrder) {
  for (const auto& [low, high] : {std::pair{3, 2}, {-1, 2}, {1, 65}, {-2, -1}, {65, 0}}) {
    const auto drafter = make(config_of(4, low, high));
    EXPECT_EQ(drafter.status().code(), StatusCode::kInvalidArgument) << low << " " << high;
    EXPECT_NE(drafter.status().message().find("1 <= min <= max <= 64"), std::string::npos);
  }
}

TEST(NgramDrafter, OnePassWithoutEntries) {
  const auto drafter = make(config_of(7, 1, 4));
  const DrafterTraits& traits = drafter.value()->traits();
  EXPECT_TRUE(traits.one_pass);
  EXPECT_FALSE(traits.has_kv);
  EXPECT_EQ(traits.max_draft_tokens, 7);
  EXPECT_EQ(traits.max_len, 256);
}

TEST(NgramDrafter, AtRestItEnqueuesNothing) {
  const auto drafter = make(config_of(7, 1, 4));
  ArgsQueue<NgramArgs> queue;
  drafter.value()->propose(queue, {}, {});
  EXPECT_EQ(queue.num_ops, 0);
}

}  // namespace
}  // namespace foretoken::test
