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
    return static_cast<double>(expected_drafts({rates, prior, num})) / RateConstants::kOne;
  };
  EXPECT_NEAR(drafts(half, none, 3), 0.5 + 0.25 + 0.125, 1e-3);
  EXPECT_EQ(drafts(half, none, 0), 0);
  EXPECT_NEAR(drafts(none, half, 2), 0.75, 1e-3) << "a new sequence starts from all others";
  EXPECT_NEAR(drafts(none, none, 1), 0.7, 1e-3) << "nothing is known";
}

TEST(DraftChoice, TheOneThatPromisesMoreIsVerified) {
  const DraftRates good = rated(0.9), poor = rated(0.3), none{};
  EXPECT_TRUE(lookup_stands({good, none, 4}, {poor, none, 4}));
  EXPECT_FALSE(lookup_stands({poor, none, 4}, {good, none, 4}));
  EXPECT_TRUE(lookup_stands({good, none, 4}, {good, none, 4})) << "equal";
  EXPECT_FALSE(lookup_stands({good, none, 1}, {good, none, 4})) << "it found too few";
  EXPECT_TRUE(lookup_stands({poor, none, 4}, {good, none, 0})) << "the other one rests";
}

TEST(DraftChoice, WhatWasNotVerifiedForLongIsTried) {
  const DraftRates good = rated(0.9), poor = rated(0.3), none{};
  const DraftRates old_good = rated(0.9, 64), old_poor = rated(0.3, 64);
  EXPECT_TRUE(lookup_stands({old_poor, none, 4}, {good, none, 4}));
  EXPECT_FALSE(lookup_stands({good, none, 4}, {old_poor, none, 4}));
  EXPECT_TRUE(lookup_stands({old_poor, none, 1}, {old_good, none, 4}));
  EXPECT_FALSE(lookup_stands({poor, none, 4}, {rated(0.9, 63), none, 4}));
}

}  // namespace
}  // namespace foretoken::spec
