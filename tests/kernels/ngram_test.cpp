#include "kernels/ngram.h"

#include <algorithm>
#include <random>

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

// kernels/ngram.h word for word, over a plain vector.
Ids reference(const Ids& t, int wanted, int min_n, int max_n) {
  const int len = static_cast<int>(t.size());
  int best = -1, best_length = 0;
  for (int j = 0; j < len - 1; ++j) {
    int length = 0;
    while (length < max_n && length <= j && t[j - length] == t[len - 1 - length]) ++length;
    if (length >= min_n && length >= best_length) {
      best = j;
      best_length = length;
    }
  }
  Ids drafts;
  for (int i = 0; i < wanted && best >= 0; ++i) {
    drafts.push_back(best + 1 + i < len ? t[best + 1 + i] : drafts[best + 1 + i - len]);
  }
  return drafts;
}

class NgramTest : public StepTest {
 protected:
  Ids drafts_for(const Ids& tokens, int computed, int wanted, int k, int min_n, int max_n,
                 DeviceFinish finished = DeviceFinish::kNone) {
    StepData d{StepSizes{}};
    d.set_sequence(1, tokens, computed);
    d.slots[1].draft.wanted = wanted;
    d.slots[1].finished = static_cast<int32_t>(finished);
    d.slots[1].num_drafts = 9;
    d.add_span(1, 1, 4);
    push(d);
    ngram(queue(), ngram_args(k, min_n, max_n));
    pull(d);
    return {d.slots[1].drafts, d.slots[1].drafts + d.slots[1].num_drafts};
  }
  Ids drafts_for(const Ids& tokens, int k, int min_n, int max_n) {
    return drafts_for(tokens, static_cast<int>(tokens.size()) - 1, kMaxDrafts, k, min_n, max_n);
  }
};

TEST_F(NgramTest, TakesTheLongestAndLatestMatch) {
  EXPECT_EQ(drafts_for({1, 2, 3, 9, 1, 2, 3, 8, 5, 2, 3}, 2, 1, 3), (Ids{8, 5}));
  EXPECT_EQ(drafts_for({1, 2, 3, 4, 2, 3, 5, 1, 2, 3}, 2, 1, 3), (Ids{4, 2}));
  EXPECT_EQ(drafts_for({1, 2, 3, 4, 2, 3, 5, 1, 2, 3}, 2, 1, 2), (Ids{5, 1}));
  EXPECT_EQ(drafts_for({1, 2, 3, 4}, 3, 1, 3), Ids{});
  EXPECT_EQ(drafts_for({1, 2, 9, 2}, 3, 2, 3), Ids{});
  EXPECT_EQ(drafts_for({1}, 3, 1, 3), Ids{});
}

TEST_F(NgramTest, ContinuesThePeriodBeyondTheEnd) {
  EXPECT_EQ(drafts_for({7, 7}, 5, 1, 3), (Ids{7, 7, 7, 7, 7}));
  EXPECT_EQ(drafts_for({1, 2, 3, 1, 2}, 7, 1, 4), (Ids{3, 1, 2, 3, 1, 2, 3}));
}

TEST_F(NgramTest, RespectsTheBoundsOfTheSlot) {
  const Ids tokens = {5, 5, 5};
  EXPECT_EQ(drafts_for(tokens, 2, 2, 4, 1, 2).size(), 2u);
  EXPECT_EQ(drafts_for(tokens, 2, 8, 4, 1, 2).size(), 4u);
  EXPECT_TRUE(drafts_for(tokens, 2, 0, 4, 1, 2).empty());
  EXPECT_TRUE(drafts_for(tokens, 1, 8, 4, 1, 2).empty()) << "prompt tokens are missing";
  EXPECT_TRUE(drafts_for(tokens, 2, 8, 4, 1, 2, DeviceFinish::kStop).empty());
  EXPECT_TRUE(drafts_for(tokens, 2, 8, 0, 1, 2).empty());
}

TEST_F(NgramTest, LeavesTheSlotsOfOtherDraftersAlone) {
  StepData d{StepSizes{}};
  for (int s = 0; s < 3; ++s) {
    d.set_sequence(s, {5, 5, 5}, 2);
    d.set_drafts(s, {9});
    d.slots[s].draft.wanted = 3;
    d.params[s].drafter = s == 2 ? 0 : 1;
  }
  d.add_span(2, 1, 4);
  d.add_span(0, 1, 4);
  push(d);
  ngram(queue(), ngram_args(4, 1, 2, 1));
  pull(d);
  EXPECT_EQ(Ids(d.slots[0].drafts, d.slots[0].drafts + d.slots[0].num_drafts), (Ids{5, 5, 5}));
  EXPECT_EQ(Ids(d.slots[2].drafts, d.slots[2].drafts + d.slots[2].num_drafts), (Ids{9}));
  EXPECT_EQ(d.slots[1].num_drafts, 1) << "it has no span";
  EXPECT_EQ(d.slots[0].draft.wanted, 3);
}

TEST_F(NgramTest, RandomHistoriesMatchAPlainReference) {
  std::mt19937 random(3);
  for (int round = 0; round < 150; ++round) {
    StepData d{StepSizes{}};
    std::vector<Ids> history(4);
    for (int s = 0; s < 4; ++s) {
      history[s].resize(1 + random() % 31);
      for (int32_t& id : history[s]) id = static_cast<int32_t>(random() % 3);
      d.set_sequence(s, history[s], static_cast<int>(history[s].size()) - 1);
      d.slots[s].draft.wanted = static_cast<int32_t>(random() % 10);
      d.add_span(s, 1, 4);
    }
    const int k = 1 + static_cast<int>(random() % 8);
    const int min_n = 1 + static_cast<int>(random() % 3);
    const int max_n = min_n + static_cast<int>(random() % 4);
    push(d);
    ngram(queue(), ngram_args(k, min_n, max_n));
    pull(d);
    for (int s = 0; s < 4; ++s) {
      const SlotState& state = d.slots[s];
      ASSERT_EQ(Ids(state.drafts, state.drafts + state.num_drafts),
                reference(history[s], std::min(k, state.draft.wanted), min_n, max_n))
          << "round " << round;
    }
  }
}

}  // namespace
}  // namespace foretoken
