#include "spec/draft_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken::spec {
namespace {

DraftRates rated(double rate, int since_draft = 0) {
  DraftRates rates{};
  rates.num_rated = 10;
  rates.since_draft = since_draft;
  std::fill_n(rates.rates, kMaxDraftTokens, static_cast<uint16_t>(rate * RateConstants::kOne));
  return rates;
}

TEST(DraftChoice, ExpectedDraftsAddUpSurvivals) {
  const DraftRates half = rated(0.5), none{};
  const auto drafts = [](const DraftRates& rates, const DraftRates& prior, int num) {
    return static_cast<double>(expected_of({rates, prior, num})) / RateConstants::kOne;
  };
  EXPECT_NEAR(drafts(half, none, 3), 0.5 + 0.25 + 0.125, 1e-3);
  EXPECT_EQ(drafts(half, none, 0), 0);
  EXPECT_NEAR(drafts(none, half, 2), 0.75, 1e-3) << "a new sequence starts from all others";
  EXPECT_NEAR(drafts(none, none, 1), 0.7, 1e-3) << "nothing is known";
}

TEST(DraftChoice, TheOneThatPromisesMoreIsVerified) {
  const DraftRates good = rated(0.9), poor = rated(0.3), prior = rated(0.5);
  EXPECT_TRUE(lookup_stands({good, prior, 4}, {poor, prior, 4}));
  EXPECT_FALSE(lookup_stands({poor, prior, 4}, {good, prior, 4}));
  EXPECT_TRUE(lookup_stands({good, prior, 4}, {good, prior, 4})) << "equal";
  EXPECT_FALSE(lookup_stands({good, prior, 1}, {good, prior, 4})) << "it found too few";
  EXPECT_TRUE(lookup_stands({poor, prior, 4}, {good, prior, 0})) << "the other one rests";
}

TEST(DraftChoice, WhatWasNotVerifiedForLongIsTried) {
  const DraftRates good = rated(0.9), poor = rated(0.3), prior = rated(0.5);
  const DraftRates old_good = rated(0.9, 64), old_poor = rated(0.3, 64);
  EXPECT_TRUE(lookup_stands({old_poor, prior, 4}, {good, prior, 4}));
  EXPECT_FALSE(lookup_stands({good, prior, 4}, {old_poor, prior, 4}));
  EXPECT_TRUE(lookup_stands({old_poor, prior, 1}, {old_good, prior, 4}));
  EXPECT_FALSE(lookup_stands({poor, prior, 4}, {rated(0.9, 63), prior, 4}));
  const DraftRates rested = rated(0.3, 4096);
  EXPECT_TRUE(lookup_stands({poor, rested, 4}, {good, prior, 4})) << "by no sequence";
  EXPECT_FALSE(lookup_stands({good, prior, 4}, {poor, rested, 4}));
}

// A head that is better than what is taken for likely leaves a look-up no turn otherwise.
TEST(DraftChoice, WhatHardlyWasVerifiedIsTried) {
  const DraftRates good = rated(0.9), none{}, prior = rated(0.5);
  DraftRates few = rated(0.3);
  few.num_rated = 3;
  EXPECT_TRUE(lookup_stands({none, none, 4}, {good, prior, 4}));
  EXPECT_TRUE(lookup_stands({none, few, 4}, {good, prior, 4}));
  EXPECT_FALSE(lookup_stands({good, prior, 4}, {none, none, 4}));
  few.num_rated = 4;
  EXPECT_FALSE(lookup_stands({none, few, 4}, {good, prior, 4}));
}

}  // namespace
}  // namespace foretoken::spec
