#include "spec/acceptance_rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "spec/batch_rates.h"

namespace foretoken::spec {
namespace {

DraftRates rates_of(uint16_t rate) {
  DraftRates state{};
  std::fill_n(state.rates, kMaxDraftTokens, rate);
  return state;
}

TEST(AcceptanceRates, RatesMoveByAShareOfTheDistance) {
  DraftRates state = rates_of(30000);
  state.num_rated = 6;
  rate_sequence(state, {3, 1, true});
  EXPECT_EQ(state.rates[0], 30000 + 35535 / 10);
  EXPECT_EQ(state.rates[1], 30000 - 3000);
  EXPECT_EQ(state.rates[2], 30000) << "not reached";
  EXPECT_EQ(state.num_rated, 7);
  state.num_rated = 1000;
  rate_sequence(state, {1, 0, true});
  EXPECT_EQ(state.rates[0], 33553 - 33553 / 32) << "the window is 32";
}

TEST(AcceptanceRates, MovesAreRoundedTowardsTheOldValue) {
  EXPECT_EQ(moved_rate(65530, 65535, 1, 6), 65530);
  EXPECT_EQ(moved_rate(5, 0, 1, 6), 5);
  EXPECT_EQ(moved_rate(7, 0, 1, 6), 6);
  EXPECT_EQ(moved_rate(0, 65535, 1, 4), 16383);
}

TEST(AcceptanceRates, ACutCommitTellsNothingOfTheDraftBehind) {
  DraftRates state = rates_of(30000);
  rate_sequence(state, {3, 1, false});
  EXPECT_GT(state.rates[0], 30000);
  EXPECT_EQ(state.rates[1], 30000);
}

TEST(AcceptanceRates, UnofferedRatesRiseAfterFullAcceptance) {
  DraftRates state = rates_of(6400);
  state.num_rated = 60;
  state.rates[0] = 60000;
  state.rates[1] = 64000;
  rate_sequence(state, {2, 2, false});
  EXPECT_EQ(state.rates[2], 6400 + (state.rates[1] - 6400) / 64);
  EXPECT_EQ(state.rates[3], 6400 + (state.rates[2] - 6400) / 64);
  EXPECT_EQ(state.rates[4], 6400 + (state.rates[3] - 6400) / 64);
  const uint16_t third = state.rates[2];
  rate_sequence(state, {2, 1, true});
  EXPECT_EQ(state.rates[2], third) << "not reached";
  DraftRates falling = rates_of(60000);
  falling.rates[1] = 10000;
  falling.num_rated = 4;
  rate_sequence(falling, {1, 1, false});
  EXPECT_EQ(falling.rates[1], 10000 + (falling.rates[0] - 10000) / 8) << "the window opens";
  EXPECT_EQ(falling.rates[2], 60000) << "never lowered";
  DraftRates full = rates_of(100);
  rate_sequence(full, {kMaxDraftTokens, kMaxDraftTokens, false});
  EXPECT_EQ(full.num_rated, 1);
}

TEST(AcceptanceRates, RatesFindTheTruth) {
  std::mt19937 random(1);
  DraftRates state = rates_of(kFirstRate);
  double mean = 0, truth = 0;
  for (int i = 0; i < 20000; ++i) {
    const bool accepted = random() % 100 < 35;
    rate_sequence(state, {1, accepted ? 1 : 0, !accepted});
    mean += state.rates[0] / 20000.0;
    truth += (accepted ? 1 : 0) / 20000.0;
  }
  EXPECT_NEAR(mean / RateConstants::kOne, truth, 0.002);
}

TEST(AcceptanceRates, SlotsStartFromThePrior) {
  DraftRates prior{}, state{};
  start_rates(state, prior);
  EXPECT_EQ(state.rates[0], kFirstRate);
  EXPECT_EQ(state.rates[kMaxDraftTokens - 1], kFirstRate);
  prior = rates_of(123);
  prior.num_rated = 1;
  start_rates(state, prior);
  EXPECT_EQ(state.rates[5], 123);
  EXPECT_EQ(state.num_rated, 0);
}

TEST(AcceptanceRates, ThePriorTakesInAStepAtOnce) {
  DraftRates prior{};
  StepVerifications none{};
  none.first_unseen = kMaxDraftTokens;
  rate_prior(prior, none);
  EXPECT_EQ(prior.num_rated, 0);
  StepVerifications step{};
  step.first_unseen = kMaxDraftTokens;
  step.count = 3;
  step.accepted[0] = 2;
  step.rejected[0] = 1;
  step.rejected[1] = 2;
  rate_prior(prior, step);
  const int mean = RateConstants::kOne * 2 / 3;
  EXPECT_EQ(prior.rates[0], kFirstRate + (mean - kFirstRate) * 3 / 4);
  EXPECT_EQ(prior.rates[1], kFirstRate - kFirstRate * 2 / 4);
  EXPECT_EQ(prior.rates[2], kFirstRate);
  EXPECT_EQ(prior.num_rated, 3);
  prior.num_rated = 500;
  prior.rates[0] = 64;
  prior.rates[1] = 0;
  StepVerifications full{};
  full.count = full.accepted[0] = 1000;
  full.first_unseen = 1;
  rate_prior(prior, full);
  EXPECT_EQ(prior.rates[0], RateConstants::kOne)
      << "more verifications than the window move it all the way";
  EXPECT_EQ(prior.rates[1], RateConstants::kOne / RateConstants::kUnseenWindow);
}

TEST(AcceptanceRates, CountsOfVerificationsStayBounded) {
  EXPECT_EQ(capped_sum(5, 3), 8);
  EXPECT_EQ(capped_sum(RateConstants::kMaxCount - 1, 3), RateConstants::kMaxCount);
  EXPECT_EQ(capped_sum(RateConstants::kMaxCount, 1000000), RateConstants::kMaxCount);
}

TEST(AcceptanceRates, TokensSinceTheLastVerification) {
  EXPECT_EQ(since_draft_after(9, 0, 1), 10);
  EXPECT_EQ(since_draft_after(9, 2, 3), 0);
  EXPECT_EQ(since_draft_after(RateConstants::kMaxCount - 1, 0, 3), RateConstants::kMaxCount);
  DraftRates prior{};
  StepVerifications step{};
  step.committed = 5;
  rate_prior(prior, step);
  rate_prior(prior, step);
  EXPECT_EQ(prior.since_draft, 10);
  step.count = step.accepted[0] = 1;
  rate_prior(prior, step);
  EXPECT_EQ(prior.since_draft, 0);
}

TEST(AcceptanceRates, OutcomesOfCommits) {
  EXPECT_TRUE(outcome_of(3, 1, 2).rejected);
  EXPECT_TRUE(outcome_of(3, 0, 1).rejected);
  EXPECT_FALSE(outcome_of(3, 3, 4).rejected);
  EXPECT_FALSE(outcome_of(3, 3, 3).rejected) << "no bonus";
  EXPECT_FALSE(outcome_of(3, 1, 1).rejected) << "cut at draft 0: nothing is known of draft 1";
  EXPECT_EQ(outcome_of(3, 1, 2).accepted, 1);
  EXPECT_EQ(outcome_of(3, 1, 2).drafted, 3);
}

TEST(AcceptanceRates, ManyOutcomesAtOnceMoveByTheirSum) {
  EXPECT_EQ(moved_rate<int64_t>(65536, 0, 3, 12), 65536 - 65536 / 4);
  EXPECT_EQ(moved_rate<int64_t>(0, 65536 * 2, 3, 3), 65536 * 2 / 3) << "all of the window";
}

TEST(AcceptanceRates, OutcomesTogetherAreWhatTheyAddUpTo) {
  EXPECT_EQ(seen_rate(30000, 1, 1, 10), moved_rate(30000, 65535, 1, 10));
  EXPECT_EQ(seen_rate(30000, 0, 1, 10), moved_rate(30000, 0, 1, 10));
  EXPECT_EQ(seen_rate(30000, 3, 7, 10), moved_rate(30000, 3 * 65535, 7, 10)) << "exactly";
  EXPECT_EQ(seen_rate(30000, 30, 40, 10), 65535 * 3 / 4) << "all of the window";
  EXPECT_EQ(seen_rate(0, 1 << 20, 1 << 20, 64), 65535) << "sums have room";
  EXPECT_EQ(unseen_rate(100, 900, 8), 200);
  EXPECT_EQ(unseen_rate(900, 100, 8), 900) << "never lowered";
}

// The same outcomes give the same rates on both, once both look back on as much, and both expect
// as much of them.
TEST(AcceptanceRates, TheHostLearnsWhatTheDeviceLearns) {
  DraftRates prior{};
  BatchRates host;
  std::mt19937 random(3);
  for (int step = 0; step < 400; ++step) {
    StepVerifications of_device{};
    BatchResults of_host;
    of_device.first_unseen = kMaxDraftTokens;
    of_device.count = 1 + static_cast<int>(random() % 6);
    for (int i = 0; i < of_device.count; ++i) {
      const bool accepted = random() % 10 < 6;
      ++(accepted ? of_device.accepted[0] : of_device.rejected[0]);
      of_host.add(1, 1, accepted ? 1 : 0);
    }
    rate_prior(prior, of_device, 1);
    host.take_in(of_host, false, 1);
    if (step < 200) continue;
    ASSERT_EQ(prior.rates[0], host.state().rates[0]) << step;
    ASSERT_EQ(expected_drafts(prior.rates, 1), host.expected_drafts(1)) << step;
  }
}

// Drafts that survive with 0.5, 0.25 and 0.125 add up.
TEST(AcceptanceRates, ExpectedDraftsAddUpSurvivals) {
  const uint16_t rates[] = {32768, 32768, 32768};
  EXPECT_EQ(expected_drafts(rates, 0), 0);
  EXPECT_EQ(expected_drafts(rates, 1), 32768);
  EXPECT_NEAR(static_cast<double>(expected_drafts(rates, 3)) / RateConstants::kOne, 0.875, 1e-4);
  const int64_t sure[] = {RateConstants::kOne, RateConstants::kOne};
  EXPECT_EQ(expected_drafts(sure, 2), 2 * RateConstants::kOne);
}

// Rates behind those of the drafter's drafts stay as they are.
TEST(AcceptanceRates, OnlyThoseOfTheDrafter) {
  DraftRates state{};
  start_first_rates(state, 3);
  EXPECT_EQ(state.rates[2], kFirstRate);
  EXPECT_EQ(state.rates[3], 0);
  rate_sequence(state, {2, 2, false}, 3);
  EXPECT_GT(state.rates[2], kFirstRate);
  EXPECT_EQ(state.rates[3], 0);
  DraftRates prior{};
  StepVerifications step{};
  step.accepted[0] = step.count = 1;
  step.first_unseen = 1;
  rate_prior(prior, step, 3);
  EXPECT_GE(prior.rates[2], kFirstRate);
  EXPECT_EQ(prior.rates[3], 0);
  DraftRates next{};
  start_rates(next, prior, 2);
  EXPECT_EQ(next.rates[1], prior.rates[1]);
  EXPECT_EQ(next.rates[2], 0);
}

}  // namespace
}  // namespace foretoken::spec
