#include "spec/verify.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foretoken::spec {
namespace {

using Ids = std::vector<int32_t>;

Verification verification(const Ids& drafts, const Ids& sampled) {
  return {drafts.data(), sampled.data(), static_cast<int32_t>(drafts.size())};
}

TEST(Verify, DraftsAreAcceptedUpToTheFirstThatDiffers) {
  const struct {
    Ids drafts;
    Ids sampled;
    int accepted;
  } cases[] = {
      {{}, {5}, 0},
      {{1, 2, 3}, {1, 2, 3, 4}, 3},
      {{1, 2, 3}, {1, 2, 9, 4}, 2},
      {{1, 2, 3}, {1, 9, 3, 4}, 1},
      {{1, 2, 3}, {9, 2, 3, 4}, 0},
      {{1, 2, 3}, {1, -1, 3, 4}, 1},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(count_accepted(verification(c.drafts, c.sampled), {}), c.accepted);
  }
}

TEST(Verify, DrawsHaveTheirChance) {
  const uint32_t chances[] = {0x40000000u, UINT32_MAX, 0};
  int accepted = 0;
  for (int position = 0; position < 40000; ++position) {
    const AcceptanceRule rule{chances, 77, 0, position};
    accepted += draw_accepts(rule, 0) ? 1 : 0;
    ASSERT_TRUE(draw_accepts(rule, 1));
    ASSERT_FALSE(draw_accepts(rule, 2));
  }
  EXPECT_NEAR(accepted / 40000.0, 0.25, 0.0075);
}

TEST(Verify, DrawsGoByThePositionAndNotByTheStep) {
  const std::vector<uint32_t> half(8, 0x80000000u);
  for (int draft = 0; draft < 8; ++draft) {
    EXPECT_EQ(draw_accepts({half.data(), 3, 1, 40}, draft),
              draw_accepts({half.data(), 3, 1, 40 + draft}, 0));
  }
}

TEST(Verify, SyntheticDrawsStopAtTheFirstThatFails) {
  const uint32_t chances[] = {UINT32_MAX, UINT32_MAX, 0, UINT32_MAX};
  const Ids drafts = {1, 2, 3, 4}, sampled = {9, 9, 9, 9, 9};
  EXPECT_EQ(count_accepted(verification(drafts, sampled), {chances, 1, 0, 0}), 2);
}

std::string appended(int num_accepted, int max_ids, int len, const Ids& stops) {
  const Ids drafts = {10, 11, 12}, sampled = {10, 11, 22, -1};
  int32_t ids[4] = {};
  const SequenceEnd end{stops.data(), static_cast<int32_t>(stops.size()), 100};
  const Appended result =
      append_accepted(verification(drafts, sampled), num_accepted, max_ids, len, end, ids);
  std::string text;
  for (int i = 0; i < result.num_ids; ++i) text += std::to_string(ids[i]) + " ";
  return text + std::to_string(static_cast<int>(result.finish));
}

TEST(Verify, AcceptedDraftsAndTheNextIdAreAppended) {
  EXPECT_EQ(appended(2, 3, 5, {}), "10 11 22 0");
  EXPECT_EQ(appended(2, 2, 5, {}), "10 11 0") << "as many as are decided";
  EXPECT_EQ(appended(2, 0, 5, {}), "0");
  EXPECT_EQ(appended(0, 1, 5, {}), "10 0");
}

TEST(Verify, SequencesEnd) {
  EXPECT_EQ(appended(2, 3, 5, {11}), "10 11 1") << "the stop id is kept";
  EXPECT_EQ(appended(2, 3, 5, {7, 22}), "10 11 22 1");
  EXPECT_EQ(appended(2, 3, 98, {}), "10 11 2");
  EXPECT_EQ(appended(2, 3, 98, {11}), "10 11 1") << "stop wins over length";
  EXPECT_EQ(appended(3, 4, 5, {}), "10 11 12 3") << "no valid probability";
}

}  // namespace
}  // namespace foretoken::spec
