#include "sched/serving_world.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// Units of the 8B shape on an H200; 0: prompts fill steps.
constexpr int kUnit = 512;

ServingWorld::Times served(int share_rows, const ServingWorld::Load& load) {
  const SchedulerConfig config{.num_blocks = 20000,
                               .max_num_seqs = 256,
                               .max_num_batched_tokens = 8192,
                               .paced_prompt_len = 2048,
                               .wave_rows = 1024,
                               .share_rows = share_rows,
                               .prefix_caching = false};
  return ServingWorld(config).run(load);
}

// By the first GPU's figures of this load the world is near the device: 53.7 ms to the first token
// and 7.8 a token at 16 requests a second, 82 and 12.1 at 24, with p99 of 50 to 80 between tokens.
TEST(ServingWorld, IsNearWhatAServerTook) {
  const auto at_16 = served(0, {.rate = 16}), at_24 = served(0, {.rate = 24});
  EXPECT_NEAR(at_16.mean_first, 53.7, 5);
  EXPECT_NEAR(at_16.mean_token, 7.8, 1);
  EXPECT_NEAR(at_24.mean_first, 82, 10);
  EXPECT_NEAR(at_24.p99_token, 78, 8);
}

// Several prompts in one step bring nobody his first token earlier, and keep all others waiting.
TEST(ServingWorld, SharesHalveTheLongestWaitsBetweenTokens) {
  for (const double rate : {16.0, 24.0}) {
    const auto whole = served(0, {.rate = rate}), shared = served(kUnit, {.rate = rate});
    EXPECT_LT(shared.p99_token, 0.55 * whole.p99_token) << rate;
    EXPECT_LT(shared.mean_token, 0.98 * whole.mean_token) << rate;
    EXPECT_LT(shared.mean_first, 1.06 * whole.mean_first) << rate;
  }
}

TEST(ServingWorld, ShortPromptsComeFirstAndTokensSooner) {
  const ServingWorld::Load load{.rate = 32, .shortest = 512, .longest = 512};
  const auto whole = served(0, load), shared = served(kUnit, load);
  EXPECT_LT(shared.mean_first, 0.96 * whole.mean_first);
  EXPECT_LT(shared.mean_token, 0.85 * whole.mean_token);
}

// Paced by the time of the rest of a step, long prompts use a third of what the device computes.
TEST(ServingWorld, LongPromptsAreNotStarved) {
  const ServingWorld::Load load{.rate = 5, .shortest = 4096, .longest = 4096};
  const auto paced = served(0, load), shared = served(kUnit, load);
  EXPECT_LT(shared.mean_first, 0.4 * paced.mean_first);
  EXPECT_LT(shared.p99_token, 32);
}

TEST(ServingWorld, TheSameLoadTakesTheSameTimes) {
  const auto once = served(kUnit, {.num_requests = 50}),
             again = served(kUnit, {.num_requests = 50});
  EXPECT_EQ(once.mean_first, again.mean_first);
  EXPECT_EQ(once.p99_token, again.p99_token);
}

}  // namespace
}  // namespace foretoken
