#include "spec/cost_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "spec/policy_tables.h"
#include "spec/policy_world.h"
#include "support/time_curve.h"

namespace foretoken {
namespace {

void add(CostFeedback& feedback, int times, int num_seqs, int drafts, int64_t table, int64_t ns) {
  for (int i = 0; i < times; ++i) feedback.add(num_seqs, drafts, table, ns);
}

TEST(CostFeedback, KnowsNothingAtFirst) {
  CostFeedback feedback;
  EXPECT_EQ(feedback.extra_ns(16, 0, 1000000), 0);
  add(feedback, 1, 16, 0, 1000000, 1500000);
  EXPECT_EQ(feedback.extra_ns(16, 0, 1000000), 0) << "one is too few";
  feedback.add(16, 0, 1000000, 1700000);
  EXPECT_EQ(feedback.extra_ns(16, 0, 1000000), 500000) << "something else may have made it slow";
  add(feedback, 3, 16, 0, 1000000, 1700000);
  EXPECT_NEAR(feedback.extra_ns(16, 0, 1000000), 700000, 20) << "most of them were as slow";
}

TEST(CostFeedback, AStepLikeItTellsByAFactor) {
  CostFeedback feedback;
  add(feedback, 10, 16, 0, 1000000, 1500000);
  EXPECT_EQ(feedback.extra_ns(13, 0, 800000), 400000) << "13 to 16 sequences are alike";
  EXPECT_EQ(feedback.extra_ns(12, 0, 800000), 0);
  EXPECT_EQ(feedback.extra_ns(17, 0, 1000000), 0);
}

TEST(CostFeedback, ANeighbourTellsByADifference) {
  CostFeedback feedback;
  add(feedback, 10, 16, 0, 2000000, 1500000);
  EXPECT_EQ(feedback.extra_ns(16, 3, 4000000), -500000);
  EXPECT_EQ(feedback.extra_ns(16, 3, 800000), -400000) << "half at most";
  add(feedback, 10, 16, 2, 2000000, 3000000);
  EXPECT_EQ(feedback.extra_ns(16, 3, 4000000), 2000000) << "of steps with drafts by a factor";
  EXPECT_EQ(feedback.extra_ns(16, 3, 1000000), 1000000) << "or what it was there, if that is more";
  EXPECT_EQ(feedback.extra_ns(16, 1, 4000000), -500000) << "of two neighbours the smaller";
  add(feedback, 10, 64, 2, 2000000, 2200000);
  EXPECT_EQ(feedback.extra_ns(64, 1, 1000000), 0) << "the cause may be in the drafts";
}

TEST(CostFeedback, InterruptedStepsSayNothing) {
  CostFeedback feedback;
  add(feedback, 40, 4, 1, 1000000, 1000000);
  add(feedback, 2, 4, 1, 1000000, 90000000);
  EXPECT_EQ(feedback.extra_ns(4, 1, 1000000), 0);
  // What stays so is believed.
  add(feedback, 3, 4, 1, 1000000, 3000000);
  EXPECT_EQ(feedback.extra_ns(4, 1, 1000000), 2000000);
}

TEST(CostFeedback, WhatIsLongAgoIsForgotten) {
  CostFeedback feedback;
  add(feedback, 9, 64, 3, 1000000, 2000000);
  add(feedback, 4000, 64, 0, 500000, 500000);
  EXPECT_EQ(feedback.extra_ns(64, 3, 1000000), 1000000);
  add(feedback, 200, 64, 0, 500000, 500000);
  EXPECT_EQ(feedback.extra_ns(64, 3, 1000000), 0) << "as steps without drafts, which are exact";
}

TEST(CostFeedback, OddSizesAreHarmless) {
  CostFeedback feedback;
  add(feedback, 10, 0, 0, 1000, 1000);
  add(feedback, 10, 1, 0, 0, 1000);
  add(feedback, 10, 1, 0, 1000, 0);
  add(feedback, 10, 1 << 30, kMaxDraftTokens, 1000, 2000);
  EXPECT_EQ(feedback.extra_ns(0, 0, 1000), 0);
  EXPECT_EQ(feedback.extra_ns(1, 0, 1000), 0);
  EXPECT_EQ(feedback.extra_ns(8192, kMaxDraftTokens, 1000), 1000);
}

TEST(CostFeedback, OfAGuessPlainStepsTellByAFactorToo) {
  CostFeedback feedback;
  add(feedback, 10, 16, 0, 2000000, 500000);
  EXPECT_EQ(feedback.extra_ns(16, 3, 4000000), -1500000);
  feedback.begin_with({}, true);
  add(feedback, 10, 16, 0, 2000000, 500000);
  EXPECT_EQ(feedback.extra_ns(16, 3, 4000000), -3000000);
}

TEST(CostFeedback, ALaterRunBeginsWithWhatIsKnown) {
  CostFeedback feedback;
  add(feedback, 10, 16, 0, 1000000, 1500000);
  add(feedback, 10, 64, 3, 2000000, 1000000);
  add(feedback, 1, 4, 3, 2000000, 1000000);
  const std::vector<CostFeedback::Known> known = feedback.known();
  ASSERT_EQ(known.size(), 2u) << "one step is too few";
  CostFeedback later;
  add(later, 10, 1, 1, 1000, 9000);
  later.begin_with(known, false);
  EXPECT_EQ(later.known(), known);
  EXPECT_EQ(later.extra_ns(1, 1, 1000), 0);
  EXPECT_EQ(later.extra_ns(16, 0, 1000000), 500000);
  EXPECT_EQ(later.extra_ns(64, 3, 2000000), -1000000);
  add(later, 5, 16, 0, 1000000, 1000000);
  EXPECT_EQ(later.extra_ns(16, 0, 1000000), 0) << "five steps outweigh it";
}

using Really = std::function<int64_t(int, int, int64_t)>;

double speed(LengthMode mode, int num_draft_tokens, bool follows, int batch, const Really& really) {
  const CostTable times = tiled_times();
  LengthControllerConfig config = policy_config(mode, num_draft_tokens);
  config.follows_device = follows;
  PolicyWorld world(times, config,
                    {.batch = batch,
                     .num_requests = batch * 3,
                     .prompt_len = 64,
                     .output_len = 400,
                     .acceptance = [](int, int position) { return .8 - .05 * position; },
                     .really = really});
  return world.run().tokens_per_second();
}

// Steps of many rows are slower than they were at start, as under a power limit.
TEST(CostFeedback, DraftsThatDoNotPayAfterAllAreLeftOut) {
  const Really hot = [](int seqs, int drafts, int64_t ns) {
    return seqs + drafts > 128 ? ns * 8 / 5 : ns;
  };
  for (const int batch : {88, 96, 104}) {
    const double off = speed(LengthMode::kOff, 3, false, batch, hot);
    EXPECT_LT(speed(LengthMode::kAdaptive, 3, false, batch, hot), 0.9 * off)
        << batch << ": the table alone errs";
    EXPECT_GE(speed(LengthMode::kAdaptive, 3, true, batch, hot), 0.975 * off) << batch;
  }
}

// A burst on a device that was cool at start: what is learned of one draft tells of two and three,
// and steps in which a part of the sequences draft tell, too.
TEST(CostFeedback, ABurstLosesLittleWhileItLearns) {
  CostTable times = tiled_times();
  times.target = test::curve({{1, 4000000},
                              {64, 5100000},
                              {128, 6400000},
                              {256, 9100000},
                              {512, 13200000},
                              {1024, 23500000},
                              {2048, 46000000}});
  times.verify.clear();
  const auto run = [&](LengthMode mode, int batch) {
    LengthControllerConfig config = policy_config(mode, 3);
    config.follows_device = true;
    PolicyWorld world(times, config,
                      {.batch = batch,
                       .num_requests = batch,
                       .prompt_len = 128,
                       .output_len = 272,
                       .acceptance = [](int, int position) { return .7 - .07 * position; },
                       .really =
                           [](int seqs, int drafts, int64_t ns) {
                             const int heated = std::clamp(seqs + drafts - 64, 0, 448);
                             return ns + ns * 9 * heated / 8960;
                           }});
    return world.run().tokens_per_second();
  };
  for (const int batch : {64, 128, 256, 512}) {
    EXPECT_GE(run(LengthMode::kAdaptive, batch), 0.96 * run(LengthMode::kOff, batch)) << batch;
  }
}

// Long contexts: every step reads a cache that the table knows nothing of, with drafts or without.
TEST(CostFeedback, DraftsThatPayAfterAllAreMade) {
  const Really far = [](int seqs, int, int64_t ns) { return ns + seqs * int64_t{100000}; };
  const double best = speed(LengthMode::kFixed, 3, false, 256, far);
  EXPECT_LT(speed(LengthMode::kAdaptive, 3, false, 256, far), 0.95 * best)
      << "the table alone errs";
  EXPECT_GE(speed(LengthMode::kAdaptive, 3, true, 256, far), 0.95 * best);
}

// The same where prompts run in nearly every step, which tell nothing of drafts: the table must
// know what context costs, or no prompt pays for its drafter's entries.
TEST(CostFeedback, WhatContextCostsIsKnownBeforeTheFirstStep) {
  constexpr int64_t kEachNs = 160000;
  const auto run = [](LengthMode mode, bool knows) {
    CostTable times = tiled_times();
    times.target = test::curve(
        {{1, 4500000}, {64, 5300000}, {128, 6700000}, {256, 9100000}, {2048, 61000000}});
    times.drafters[0].catch_up =
        test::curve({{1, 350000}, {64, 400000}, {256, 650000}, {2048, 2600000}});
    times.known_tokens = 256;
    if (knows) times.context = {{0, 40000}, {3, 42000}};
    LengthControllerConfig config = policy_config(mode, 3);
    config.follows_device = true;
    PolicyWorld world(times, config,
                      {.batch = 128,
                       .num_requests = 128,
                       .prompt_len = 4096,
                       .output_len = 400,
                       .acceptance = [](int, int position) { return .8 - .05 * position; },
                       .really = [](int seqs, int, int64_t ns) { return ns + seqs * kEachNs; }});
    return world.run().tokens_per_second();
  };
  const double best = run(LengthMode::kFixed, false);
  EXPECT_GT(best, 1.02 * run(LengthMode::kOff, false));
  EXPECT_LT(run(LengthMode::kAdaptive, false), 0.98 * best) << "the table alone errs";
  EXPECT_GE(run(LengthMode::kAdaptive, true), 0.98 * best);
}

TEST(CostFeedback, ATableThatIsRightStaysRight) {
  for (const int batch : {1, 16, 64, 256}) {
    const double alone = speed(LengthMode::kAdaptive, 3, false, batch, nullptr);
    EXPECT_NEAR(speed(LengthMode::kAdaptive, 3, true, batch, nullptr) / alone, 1, 0.005) << batch;
  }
}

// A small model on a fast device: the host's part of a step takes longer than the device's, so that
// drafts which the table calls too dear are free.
TEST(CostFeedback, DraftsAreFreeWhereTheHostBoundsSteps) {
  CostTable times = tiled_times();
  times.target =
      test::curve({{1, 100000}, {16, 200000}, {32, 330000}, {64, 600000}, {128, 1100000}});
  times.drafters[0].catch_up = test::curve({{1, 20000}, {64, 40000}, {2048, 800000}});
  times.drafters[0].pass = test::curve({{1, 20000}, {64, 40000}});
  times.verify.clear();
  const auto run = [&](LengthMode mode, bool host_may_bound, int64_t host_ns) {
    LengthControllerConfig config = policy_config(mode, 3);
    config.follows_device = true;
    config.host_may_bound = host_may_bound;
    PolicyWorld world(times, config,
                      {.batch = 16,
                       .num_requests = 48,
                       .prompt_len = 64,
                       .output_len = 64,
                       .acceptance = [](int, int position) { return .8 - .05 * position; },
                       .really = [=](int, int, int64_t ns) { return std::max(ns, host_ns); }});
    return world.run().tokens_per_second();
  };
  constexpr int64_t kHostNs = 1500000;
  const double best = run(LengthMode::kFixed, false, kHostNs);
  EXPECT_LT(run(LengthMode::kAdaptive, false, kHostNs), 0.6 * best) << "the table alone errs";
  EXPECT_GE(run(LengthMode::kAdaptive, true, kHostNs), 0.75 * best);
  // A little more is what else the host does.
  const double off = run(LengthMode::kOff, false, 230000);
  EXPECT_GE(run(LengthMode::kAdaptive, true, 230000), 0.97 * off);
}

}  // namespace
}  // namespace foretoken
