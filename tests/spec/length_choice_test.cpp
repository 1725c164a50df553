#include "spec/length_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace foretoken::spec {
namespace {

DraftRates equal_rates(uint16_t rate) {
  DraftRates state{};
  std::fill_n(state.rates, kMaxDraftTokens, rate);
  return state;
}

TEST(LengthChoice, SurvivalIsTheProductOfRates) {
  DraftRates state{};
  for (int i = 0; i < 4; ++i) state.rates[i] = static_cast<uint16_t>(60000 - 9000 * i);
  int32_t survival = RateConstants::kOne;
  double want = 1;
  for (int i = 0; i < 4; ++i) {
    survival = next_survival(survival, state.rates[i]);
    want *= state.rates[i] / 65535.0;
    EXPECT_NEAR(survival / 65535.0, want, 1e-4);
    EXPECT_NEAR(level_gain(level_of(survival)) / double{LevelConstants::kTokenGain}, want,
                0.5 / LevelConstants::kNumLevels + 1e-4);
  }
  EXPECT_EQ(next_survival(RateConstants::kOne, 65535), RateConstants::kOne);
  EXPECT_EQ(level_of(RateConstants::kOne), LevelConstants::kNumLevels - 1);
  EXPECT_EQ(level_of(0), 0);
}

TEST(LengthChoice, DraftsGoDownToALevel) {
  DraftRates state = equal_rates(32768);  // levels 128, 64, 32, 16, ...
  EXPECT_EQ(drafts_down_to(state, 0, 5, 64), 2);
  EXPECT_EQ(drafts_down_to(state, 0, 5, 65), 1);
  EXPECT_EQ(drafts_down_to(state, 0, 5, LevelConstants::kNumLevels), 0);
  EXPECT_EQ(drafts_down_to(state, 1, 5, LevelConstants::kNumLevels), 1);
  EXPECT_EQ(drafts_down_to(state, 0, 5, 0), 5);
  EXPECT_EQ(drafts_down_to(state, 0, 0, 0), 0);
}

TEST(LengthChoice, CostsBeyondTheTableAreItsLast) {
  const int32_t ns[] = {100, 200, 300};
  const StepCost cost{ns, 3, 7};
  EXPECT_EQ(cost_of(cost, 1), 207);
  EXPECT_EQ(cost_of(cost, 2), 307);
  EXPECT_EQ(cost_of(cost, 9), 307);
  const int32_t zero[] = {0};
  EXPECT_EQ(cost_of({zero, 1, 0}, 0), 1);
}

TEST(LengthChoice, TheLowestLevelPays) {
  int32_t counts[LevelConstants::kNumLevels] = {};
  counts[200] = 2;
  counts[100] = 3;
  const auto best = [&](const std::vector<int32_t>& ns, int32_t draft_ns) {
    return lowest_level(counts, 2, 0, 0, {ns.data(), static_cast<int32_t>(ns.size()), draft_ns});
  };
  EXPECT_EQ(best({1000}, 0), 100) << "rows cost nothing";
  EXPECT_EQ(best({0, 500, 1000, 1500, 2000, 2500, 3000, 3500}, 0), LevelConstants::kNumLevels)
      << "each row is full";
  EXPECT_EQ(best({0, 500, 1000, 1010, 1020, 2500, 3000, 3500}, 0), 200) << "two rows are cheap";
  EXPECT_EQ(best({0, 500, 1000, 9000, 9000, 1000, 1000, 1001}, 0), 100) << "a dear row between";
  EXPECT_EQ(best({0, 500, 1000, 1500, 2000, 2500, 3000, 3500}, 1 << 30), 100)
      << "the passes are paid for anyway";
}

TEST(LengthChoice, LargestSumsStayInRange) {
  int32_t counts[LevelConstants::kNumLevels] = {};
  counts[255] = 1 << 20;
  const int32_t ns[] = {INT32_MAX - 1, INT32_MAX};
  EXPECT_EQ(lowest_level(counts, 1 << 16, 0, 0, {ns, 2, INT32_MAX}), 255);
}

TEST(LengthChoice, MostDraftsKeepsEveryBound) {
  const auto most = [](int granted, int max_len, int draft_max_len) {
    return max_draft_tokens({granted, 5, 10, max_len, draft_max_len});
  };
  EXPECT_EQ(most(8, 100, 1000), 5);
  EXPECT_EQ(most(3, 100, 1000), 3);
  EXPECT_EQ(most(8, 100, INT32_MAX), 5);
  EXPECT_EQ(most(8, 100, 12), 3);
  EXPECT_EQ(most(8, 100, 10), 1);
  EXPECT_EQ(most(8, 100, 9), 0);
  EXPECT_EQ(most(8, 100, 2), 0);
  EXPECT_EQ(most(8, 13, 1000), 2);
  EXPECT_EQ(most(8, 11, 1000), 0);
  EXPECT_EQ(most(8, 10, 1000), 0);
}

TEST(LengthChoice, TheSequenceThatRestsLongestIsTheProbe) {
  DraftRates young{}, old{}, due{};
  young.since_draft = 3;
  old.since_draft = 60;
  due.since_draft = RateConstants::kProbeTokens;
  EXPECT_GT(probe_priority(old, 2, 7), probe_priority(young, 2, 0));
  EXPECT_GT(probe_priority(old, 2, 0), probe_priority(old, 2, 1)) << "the first among equals";
  EXPECT_EQ(probe_priority(old, 0, 0), 0) << "it can use none";
  EXPECT_EQ(probe_priority(due, 2, 0), 0) << "it has a probe of its own";
  EXPECT_EQ(least_drafts(due, 2), 1);
  EXPECT_EQ(least_drafts(due, 0), 0);
  EXPECT_EQ(least_drafts(old, 2), 0);
}

}  // namespace
}  // namespace foretoken::spec
