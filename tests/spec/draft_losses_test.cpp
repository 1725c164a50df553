#include "spec/draft_losses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace foretoken {
namespace {

constexpr int kSeqs = 64;
constexpr int64_t kPlainNs = 5'000'000;

// Steps of which sequence i gets `extra[i]` tokens more.
class Batch {
 public:
  DraftLosses::Step step(int64_t cost_ns, const std::vector<uint8_t>& extra) const {
    DraftLosses::Step step{.num_seqs = kSeqs,
                           .plain_ns = kPlainNs,
                           .step_ns = kPlainNs,
                           .cost_ns = cost_ns,
                           .by_slot = extra};
    step.drafts.add(2 * kSeqs, std::accumulate(extra.begin(), extra.end(), 0));
    return step;
  }
  // Steps until drafts must wait; `most`: never.
  int steps_to_the_end(int64_t cost_ns, const std::vector<uint8_t>& extra, int most = 1000) {
    for (int i = 0; i < most; ++i) {
      if (losses.must_wait()) return i;
      losses.add(step(cost_ns, extra));
    }
    return most;
  }

  DraftLosses losses{kSeqs};
};

std::vector<uint8_t> some_get(int count, int extra) {
  std::vector<uint8_t> all(kSeqs, 0);
  std::fill_n(all.begin(), count, static_cast<uint8_t>(extra));
  return all;
}

TEST(DraftLosses, WhatPaysIsNeverStopped) {
  EXPECT_EQ(Batch().steps_to_the_end(kPlainNs / 2, some_get(kSeqs, 1)), 1000);
  EXPECT_EQ(Batch().steps_to_the_end(kPlainNs / 10, some_get(kSeqs / 2 + 1, 1)), 1000)
      << "more than half of them are enough";
}

// The others wait for them, unless others take their place.
TEST(DraftLosses, AFewSequencesDoNotPayForAll) {
  const auto few = some_get(8, 4);
  EXPECT_EQ(Batch().steps_to_the_end(kPlainNs / 10, few), 14);
  EXPECT_EQ(Batch().steps_to_the_end(kPlainNs * 3 / 10, few), 8) << "seen early where it is dear";
  Batch busy;
  for (int i = 0; i < 500; ++i) {
    DraftLosses::Step step = busy.step(kPlainNs / 10, few);
    step.is_open = i % 10 == 0;
    busy.losses.add(step);
    ASSERT_FALSE(busy.losses.must_wait()) << i;
  }
  EXPECT_EQ(Batch().steps_to_the_end(kPlainNs / 128, few), 1000) << "nobody is slower";
}

// All of them get something now and then.
TEST(DraftLosses, TurnsAreNotAMinority) {
  Batch one;
  for (int step = 0; step < 1000; ++step) {
    std::vector<uint8_t> extra(kSeqs, 0);
    for (int i = 0; i < 8; ++i) extra[static_cast<size_t>((step * 8 + i) % kSeqs)] = 4;
    one.losses.add(one.step(kPlainNs / 10, extra));
    ASSERT_FALSE(one.losses.must_wait()) << step;
  }
}

// Steps beside prompts count as well: where there is always one, drafts wait no longer.
TEST(DraftLosses, StepsBesidePromptsAllowTheirPart) {
  Batch one;
  const auto none = some_get(0, 0);
  EXPECT_LT(one.steps_to_the_end(kPlainNs / 5, none), 10);
  int waits = 0;
  for (; one.losses.must_wait() && waits < 1000; ++waits) {
    DraftLosses::Step step = one.step(0, none);
    step.step_ns = 4 * kPlainNs;
    step.is_open = true;
    one.losses.add(step);
  }
  EXPECT_LT(waits, 25);
}

// Predictions have an account of their own, which bears their part of the costs.
TEST(DraftLosses, PredictionsWaitForThemselves) {
  Batch one;
  DraftLosses::Step step = one.step(kPlainNs / 5, some_get(0, 0));
  step.predicted.add(2 * kSeqs, 0);
  int steps = 0;
  for (; !one.losses.must_predictions_wait() && steps < 1000; ++steps) one.losses.add(step);
  EXPECT_LT(steps, 10);
  for (int i = 0; i < 100; ++i) one.losses.add(step);
  EXPECT_FALSE(one.losses.must_wait()) << "nothing of it was theirs";
  one.losses.end_predictions();
  EXPECT_FALSE(one.losses.must_predictions_wait()) << "another request's";
  Batch other;
  EXPECT_LT(other.steps_to_the_end(kPlainNs / 5, some_get(0, 0)), 10);
  EXPECT_FALSE(other.losses.must_predictions_wait());
}

// What it costs to catch up many sequences is charged in parts, and wholly.
TEST(DraftLosses, EntriesThatFellBehindAreCharged) {
  Batch one;
  DraftLosses::Step step = one.step(0, some_get(0, 0));
  step.caught_up_ns = 4 * kPlainNs;
  one.losses.add(step);
  EXPECT_FALSE(one.losses.must_wait());
  step.caught_up_ns = 0;
  int steps = 0;
  for (; !one.losses.must_wait() && steps < 1000; ++steps) one.losses.add(step);
  EXPECT_GT(steps, 20);
  EXPECT_LT(steps, 60);
  Batch good;
  step = good.step(kPlainNs / 2, some_get(kSeqs, 1));
  step.caught_up_ns = 4 * kPlainNs;
  good.losses.add(step);
  EXPECT_EQ(good.steps_to_the_end(kPlainNs / 2, some_get(kSeqs, 1)), 1000);
}

}  // namespace
}  // namespace foretoken
