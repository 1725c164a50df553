#include "kernels/draft_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace foretoken::draft_math {
namespace {

DraftState state_with(uint16_t rate) {
  DraftState state{};
  std::fill_n(state.rates, kMaxDrafts, rate);
  return state;
}

TEST(DraftMath, VerificationsOfResults) {
  const auto of = [](int drafted, int accepted, int committed) {
    SpanResult result{};
    result.num_drafted = drafted;
    result.num_accepted = accepted;
    result.num_committed = committed;
    return verification_of(result);
  };
  EXPECT_TRUE(of(3, 1, 2).rejected);
  EXPECT_TRUE(of(3, 0, 1).rejected);
  EXPECT_FALSE(of(3, 3, 4).rejected);
  EXPECT_FALSE(of(3, 3, 3).rejected) << "no bonus";
  EXPECT_FALSE(of(3, 1, 1).rejected) << "cut at draft 0: nothing is known of draft 1";
  EXPECT_EQ(of(3, 1, 2).accepted, 1);
  EXPECT_EQ(of(3, 1, 2).drafted, 3);
}

TEST(DraftMath, RatesMoveByAShareOfTheDistance) {
  DraftState state = state_with(30000);
  state.num_rated = 6;
  rate_slot(state, {3, 1, true});
  EXPECT_EQ(state.rates[0], 30000 + 35535 / 10);
  EXPECT_EQ(state.rates[1], 30000 - 3000);
  EXPECT_EQ(state.rates[2], 30000) << "not reached";
  EXPECT_EQ(state.num_rated, 7);
  state.num_rated = 1000;
  rate_slot(state, {1, 0, true});
  EXPECT_EQ(state.rates[0], 33553 - 33553 / 32) << "the window is 32";
}

TEST(DraftMath, MovesAreRoundedTowardsTheOldValue) {
  EXPECT_EQ(moved_rate(65530, 65535, 6), 65530);
  EXPECT_EQ(moved_rate(5, 0, 6), 5);
  EXPECT_EQ(moved_rate(7, 0, 6), 6);
  EXPECT_EQ(moved_rate(0, 65535, 4), 16383);
}

TEST(DraftMath, ACutCommitTellsNothingOfTheDraftBehind) {
  DraftState state = state_with(30000);
  rate_slot(state, {3, 1, false});
  EXPECT_GT(state.rates[0], 30000);
  EXPECT_EQ(state.rates[1], 30000);
}

TEST(DraftMath, UnofferedRatesRiseAfterFullAcceptance) {
  DraftState state = state_with(6400);
  state.num_rated = 60;
  state.rates[0] = 60000;
  state.rates[1] = 64000;
  rate_slot(state, {2, 2, false});
  EXPECT_EQ(state.rates[2], 6400 + (state.rates[1] - 6400) / 64);
  EXPECT_EQ(state.rates[3], 6400 + (state.rates[2] - 6400) / 64);
  EXPECT_EQ(state.rates[4], 6400 + (state.rates[3] - 6400) / 64);
  const uint16_t third = state.rates[2];
  rate_slot(state, {2, 1, true});
  EXPECT_EQ(state.rates[2], third) << "not reached";
  DraftState falling = state_with(60000);
  falling.rates[1] = 10000;
  falling.num_rated = 4;
  rate_slot(falling, {1, 1, false});
  EXPECT_EQ(falling.rates[1], 10000 + (falling.rates[0] - 10000) / 8) << "the window opens";
  EXPECT_EQ(falling.rates[2], 60000) << "never lowered";
  DraftState full = state_with(100);
  rate_slot(full, {kMaxDrafts, kMaxDrafts, false});
  EXPECT_EQ(full.num_rated, 1);
}

TEST(DraftMath, RatesFindTheTruth) {
  std::mt19937 random(1);
  DraftState state = state_with(kFirstRate);
  double mean = 0, truth = 0;
  for (int i = 0; i < 20000; ++i) {
    const bool accepted = random() % 100 < 35;
    rate_slot(state, {1, accepted ? 1 : 0, !accepted});
    mean += state.rates[0] / 20000.0;
    truth += (accepted ? 1 : 0) / 20000.0;
  }
  EXPECT_NEAR(mean / kRateOne, truth, 0.002);
}

TEST(DraftMath, SlotsStartFromThePrior) {
  DraftState prior{}, state{};
  start_rates(state, prior);
  EXPECT_EQ(state.rates[0], kFirstRate);
  EXPECT_EQ(state.rates[kMaxDrafts - 1], kFirstRate);
  prior = state_with(123);
  prior.num_rated = 1;
  start_rates(state, prior);
  EXPECT_EQ(state.rates[5], 123);
  EXPECT_EQ(state.num_rated, 0);
}

TEST(DraftMath, ThePriorTakesInAStepAtOnce) {
  DraftState prior{};
  StepVerifications none{};
  none.first_unseen = kMaxDrafts;
  rate_prior(prior, none);
  EXPECT_EQ(prior.num_rated, 0);
  StepVerifications step{};
  step.first_unseen = kMaxDrafts;
  step.count = 3;
  step.accepted[0] = 2;
  step.rejected[0] = 1;
  step.rejected[1] = 2;
  rate_prior(prior, step);
  const int mean = kRateOne * 2 / 3;
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
  EXPECT_EQ(prior.rates[0], kRateOne) << "more verifications than the window move it all the way";
  EXPECT_EQ(prior.rates[1], kRateOne / kUnseenWindow);
}

TEST(DraftMath, CountsOfVerificationsStayBounded) {
  EXPECT_EQ(more_rated(5, 3), 8);
  EXPECT_EQ(more_rated(kMostRated - 1, 3), kMostRated);
  EXPECT_EQ(more_rated(kMostRated, 1000000), kMostRated);
}

TEST(DraftMath, MostDraftsKeepsEveryBound) {
  SlotState state{};
  state.len = 10;
  SlotParams params{};
  params.max_drafts = 5;
  params.max_len = 100;
  EXPECT_EQ(most_drafts(state, params, 8, 1000), 5);
  EXPECT_EQ(most_drafts(state, params, 3, 1000), 3);
  EXPECT_EQ(most_drafts(state, params, 8, INT32_MAX), 5);
  EXPECT_EQ(most_drafts(state, params, 8, 12), 3);
  EXPECT_EQ(most_drafts(state, params, 8, 10), 1);
  EXPECT_EQ(most_drafts(state, params, 8, 9), 0);
  EXPECT_EQ(most_drafts(state, params, 8, 2), 0);
  params.max_len = 13;
  EXPECT_EQ(most_drafts(state, params, 8, 1000), 2);
  params.max_len = 11;
  EXPECT_EQ(most_drafts(state, params, 8, 1000), 0);
  params.max_len = 10;
  EXPECT_EQ(most_drafts(state, params, 8, 1000), 0);
}

TEST(DraftMath, SurvivalIsTheProductOfRates) {
  DraftState state{};
  for (int i = 0; i < 4; ++i) state.rates[i] = static_cast<uint16_t>(60000 - 9000 * i);
  int32_t survival = kRateOne;
  double want = 1;
  for (int i = 0; i < 4; ++i) {
    survival = next_survival(survival, state.rates[i]);
    want *= state.rates[i] / 65535.0;
    EXPECT_NEAR(survival / 65535.0, want, 1e-4);
    EXPECT_NEAR(level_gain(level_of(survival)) / double{kTokenGain}, want, 0.5 / kNumLevels + 1e-4);
  }
  EXPECT_EQ(next_survival(kRateOne, 65535), kRateOne);
  EXPECT_EQ(level_of(kRateOne), kNumLevels - 1);
  EXPECT_EQ(level_of(0), 0);
}

TEST(DraftMath, DraftsGoDownToALevel) {
  DraftState state = state_with(32768);  // levels 128, 64, 32, 16, ...
  EXPECT_EQ(drafts_down_to(state, 0, 5, 64), 2);
  EXPECT_EQ(drafts_down_to(state, 0, 5, 65), 1);
  EXPECT_EQ(drafts_down_to(state, 0, 5, kNumLevels), 0);
  EXPECT_EQ(drafts_down_to(state, 1, 5, kNumLevels), 1);
  EXPECT_EQ(drafts_down_to(state, 0, 5, 0), 5);
  EXPECT_EQ(drafts_down_to(state, 0, 0, 0), 0);
}

TEST(DraftMath, CostsBeyondTheTableAreItsLast) {
  const int32_t ns[] = {100, 200, 300};
  const StepCost cost{ns, 3, 7};
  EXPECT_EQ(cost_of(cost, 1), 207);
  EXPECT_EQ(cost_of(cost, 2), 307);
  EXPECT_EQ(cost_of(cost, 9), 307);
  const int32_t zero[] = {0};
  EXPECT_EQ(cost_of({zero, 1, 0}, 0), 1);
}

TEST(DraftMath, TheLowestLevelPays) {
  int32_t counts[kNumLevels] = {};
  counts[200] = 2;
  counts[100] = 3;
  const auto best = [&](const std::vector<int32_t>& ns, int32_t draft_ns) {
    return lowest_level(counts, 2, 0, 0, {ns.data(), static_cast<int32_t>(ns.size()), draft_ns});
  };
  EXPECT_EQ(best({1000}, 0), 100) << "rows cost nothing";
  EXPECT_EQ(best({0, 500, 1000, 1500, 2000, 2500, 3000, 3500}, 0), kNumLevels)
      << "each row is full";
  EXPECT_EQ(best({0, 500, 1000, 1010, 1020, 2500, 3000, 3500}, 0), 200) << "two rows are cheap";
  EXPECT_EQ(best({0, 500, 1000, 9000, 9000, 1000, 1000, 1001}, 0), 100) << "a dear row between";
  EXPECT_EQ(best({0, 500, 1000, 1500, 2000, 2500, 3000, 3500}, 1 << 30), 100)
      << "the passes are paid for anyway";
}

TEST(DraftMath, LargestSumsStayInRange) {
  int32_t counts[kNumLevels] = {};
  counts[255] = 1 << 20;
  const int32_t ns[] = {INT32_MAX - 1, INT32_MAX};
  EXPECT_EQ(lowest_level(counts, 1 << 16, 0, 0, {ns, 2, INT32_MAX}), 255);
}

TEST(DraftMath, CoinsHaveTheirChance) {
  SlotParams params{};
  params.seed = 77;
  int heads = 0;
  for (int position = 0; position < 40000; ++position) {
    heads += coin_accepts(0x40000000u, position, params) ? 1 : 0;
    ASSERT_TRUE(coin_accepts(UINT32_MAX, position, params));
    ASSERT_FALSE(coin_accepts(0, position, params));
  }
  EXPECT_NEAR(heads / 40000.0, 0.25, 0.0075);
}

TEST(DraftMath, TokensSinceTheLastVerification) {
  EXPECT_EQ(since_draft_after(9, 0, 1), 10);
  EXPECT_EQ(since_draft_after(9, 2, 3), 0);
  EXPECT_EQ(since_draft_after(kMostRated - 1, 0, 3), kMostRated);
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

}  // namespace
}  // namespace foretoken::draft_math
