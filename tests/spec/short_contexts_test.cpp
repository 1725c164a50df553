#include <gtest/gtest.h>

#include "spec/length_controller.h"
#include "spec/policy_tables.h"
#include "support/time_curve.h"

// Lengths where steps of short texts take less than the table's.
namespace foretoken {
namespace {

using test::curve;

// With 256 tokens known a step takes 1.2 ms and a draft adds 3 % to it, with 64 known a quarter of
// that, of which a draft is 10 %: its pass takes as long with few tokens as with many.
CostTable head_times(bool with_short) {
  CostTable times;
  times.target = curve({{1, 1'200'000}, {2, 1'208'000}});
  times.verify = {{.drafts = 0, .idle = curve({{1, 1'200'000}}), .full = curve({{1, 1'200'000}})},
                  {.drafts = 1, .idle = curve({{1, 1'208'000}}), .full = curve({{1, 1'208'000}})}};
  times.drafters.push_back(
      {.name = "medusa", .one_pass = false, .catch_up = {}, .pass = curve({{1, 28'000}})});
  times.known_tokens = 256;
  if (!with_short) return times;
  times.short_tokens = 64;
  times.short_steps.resize(2);
  for (const int drafts : {0, 1}) {
    times.short_steps[static_cast<size_t>(drafts)].drafts = drafts;
    times.short_steps[static_cast<size_t>(drafts)].shares.add(1, TimeShares::kOne / 4);
  }
  return times;
}

// Of the last 400 of 1,000 steps of one sequence, those that draft. One draft of 16 is accepted.
int num_drafting_steps(const CostTable& times, int num_tokens) {
  LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 1);
  config.drafters[0].has_kv = config.drafters[0].keeps_written = false;
  LengthController policy(config, times);
  BatchDemand demand;
  demand.num_sequences = demand.num_decoding = demand.num_counted = 1;
  demand.num_tokens = num_tokens;
  demand.drafters[0].num_decoding = demand.drafters[0].num_ready = 1;
  int num_drafts = 0;
  int num_late = 0;
  for (uint64_t step = 0; step < 1000; ++step) {
    const int limit = policy.decide(step, demand)[0].num_draft_tokens;
    policy.planned(step, {1, 1 + limit, 0, {DraftUse{limit, 0, limit}}, num_tokens});
    if (limit == 0) continue;
    policy.observe(step, 0, 1, 1, num_drafts++ % 16 == 8 ? 1 : 0);
    if (step >= 600) ++num_late;
  }
  return num_late;
}

TEST(ShortContexts, DraftsThatPayInLongTextsAloneRestInShortOnes) {
  const CostTable times = head_times(true);
  EXPECT_GE(num_drafting_steps(times, 256), 300);
  EXPECT_GE(num_drafting_steps(times, 2000), 300);
  EXPECT_LE(num_drafting_steps(times, 64), 60) << "probes, and what follows a lucky one";
  EXPECT_GE(num_drafting_steps(head_times(false), 64), 300) << "as where nothing tells of them";
}

// Where drafts get cheaper as the step does, as many pay.
TEST(ShortContexts, DraftsWhosePassIsShorterTooStay) {
  CostTable times = head_times(true);
  times.drafters[0].short_pass.add(1, TimeShares::kOne / 4);
  EXPECT_GE(num_drafting_steps(times, 64), 300);
}

}  // namespace
}  // namespace foretoken
