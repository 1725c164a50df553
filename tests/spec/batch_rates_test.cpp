#include "spec/batch_rates.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

BatchResults results_of(int reached, int accepted, int num_idle = 0) {
  BatchResults results;
  results.reached[0] = reached;
  results.accepted[0] = accepted;
  results.num_idle = num_idle;
  return results;
}

TEST(BatchRates, ResultsCountDraftsUpToTheFirstRejected) {
  BatchResults results;
  results.add(4, 3, 1);
  results.add(4, 2, 2);
  results.add(4, 0, 0);
  results.add(0, 0, 0);
  EXPECT_EQ(results.reached[0], 2);
  EXPECT_EQ(results.accepted[0], 2);
  EXPECT_EQ(results.reached[1], 2);
  EXPECT_EQ(results.accepted[1], 1);
  EXPECT_EQ(results.reached[2], 0);
  EXPECT_EQ(results.num_idle, 1) << "a span without room is not idle";
}

TEST(BatchRates, AnUnknownDrafterIsTakenForGood) {
  const BatchRates rates;
  EXPECT_EQ(rates.expected_drafts(0), 0);
  EXPECT_EQ(rates.expected_drafts(1), spec::kFirstRate);
  EXPECT_EQ(rates.expected_drafts(2),
            spec::kFirstRate + int64_t{spec::kFirstRate} * spec::kFirstRate / BatchRates::kOne);
  EXPECT_EQ(rates.share(), BatchRates::kOne);
}

TEST(BatchRates, RatesAreMeansOfLateResults) {
  BatchRates rates;
  rates.take_in(results_of(1, 0), false, 1);
  EXPECT_EQ(rates.expected_drafts(1), spec::kFirstRate - spec::kFirstRate / 5) << "4 and 1";
  for (int i = 0; i < 2000; ++i) rates.take_in(results_of(4, 1), false, 1);
  EXPECT_NEAR(static_cast<double>(rates.expected_drafts(1)) / BatchRates::kOne, 0.25, 0.001);
  rates.take_in(results_of(1000, 1000), false, 1);
  EXPECT_EQ(rates.expected_drafts(1), BatchRates::kOne) << "more than it looks back on";
}

TEST(BatchRates, ProbesOfARestingDrafterCountMore) {
  BatchRates resting, drafting;
  for (int i = 0; i < 100; ++i) {
    resting.take_in(results_of(1, 0), false, 1);
    drafting.take_in(results_of(1, 0), false, 1);
  }
  resting.take_in(results_of(1, 1), true, 1);
  drafting.take_in(results_of(1, 1), false, 1);
  EXPECT_GT(resting.expected_drafts(1), 2 * drafting.expected_drafts(1));
}

TEST(BatchRates, RatesBehindThoseThatAreOfferedComeBack) {
  BatchRates rates;
  BatchResults bad;
  bad.reached[0] = bad.accepted[0] = bad.reached[1] = 64;
  rates.take_in(bad, false, 2);
  EXPECT_EQ(rates.expected_drafts(2), BatchRates::kOne) << "the second is never accepted";
  for (int i = 0; i < 3000; ++i) rates.take_in(results_of(64, 64), false, 2);
  EXPECT_NEAR(static_cast<double>(rates.expected_drafts(2)) / BatchRates::kOne, 1 + 15.0 / 16,
              0.01);
}

TEST(BatchRates, TheShareOfDraftingSequencesIsLearntAndForgotten) {
  BatchRates rates;
  for (int i = 0; i < 200; ++i) rates.take_in(results_of(2, 2, 6), false, 1);
  EXPECT_NEAR(static_cast<double>(rates.share()) / BatchRates::kOne, 0.25, 0.01);
  const int64_t learnt = rates.share();
  rates.take_in({}, true, 1);
  EXPECT_EQ(rates.share(), learnt + (BatchRates::kOne - learnt) / 2048);
}

TEST(BatchRates, WhatWasFoundAtRestEndsWhatIsKnown) {
  BatchRates rates;
  for (int i = 0; i < 200; ++i) rates.take_in(results_of(4, 0, 4), false, 1);
  BatchResults found;
  for (int i = 0; i < 4; ++i) found.add(0, 0, 0);
  found.num_found = 1;
  const int64_t before = rates.expected_drafts(1);
  rates.take_in(found, false, 1);
  EXPECT_EQ(rates.expected_drafts(1), before) << "it does not rest";
  rates.take_in(found, true, 1);
  EXPECT_EQ(rates.expected_drafts(1), BatchRates().expected_drafts(1));
  EXPECT_NEAR(static_cast<double>(rates.share()) / BatchRates::kOne, 0.25, 0.01);
}

}  // namespace
}  // namespace foretoken
