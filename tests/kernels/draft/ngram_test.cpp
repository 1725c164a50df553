#include "kernels/draft/ngram.h"

#include <algorithm>
#include <random>

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

// kernels/draft/ngram.h word for word, over a plain vector.
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

// The same beside a prediction: u is the prompt followed by it.
Ids reference(const Ids& t, const Ids& prediction, int prompt_len, int wanted, int min_n,
              int max_n) {
  const int len = static_cast<int>(t.size());
  Ids u(t.begin(), t.begin() + prompt_len);
  u.insert(u.end(), prediction.begin(), prediction.end());
  int best = -1, best_length = 0, best_distance = 0;
  for (int end = prompt_len; end < static_cast<int>(u.size()); ++end) {
    int length = 0;
    while (length < 32 && length < end && length < len &&
           u[end - 1 - length] == t[len - 1 - length]) {
      ++length;
    }
    const int distance = std::abs(end - len);
    if (length < std::min(min_n, 2) || length < best_length) continue;
    if (length == best_length && best >= 0 && distance > best_distance) continue;
    best = end;
    best_length = length;
    best_distance = distance;
  }
  int own = 0;
  for (int j = 0; j < len - 1; ++j) {
    int length = 0;
    while (length < max_n && length <= j && t[j - length] == t[len - 1 - length]) ++length;
    if (length >= min_n) own = std::max(own, length);
  }
  if (best < 0 || own > best_length) return reference(t, wanted, min_n, max_n);
  const int count = std::min(wanted, static_cast<int>(u.size()) - best);
  return {u.begin() + best, u.begin() + best + count};
}

class NgramTest : public StepTest {
 protected:
  Ids drafts_for(const Ids& tokens, int computed, int wanted, int k, int min_n, int max_n,
                 DeviceFinish finished = DeviceFinish::kNone) {
    StepData d{StepSizes{}};
    d.set_sequence(1, tokens, computed);
    d.slots[1].draft.num_draft_tokens = wanted;
    d.slots[1].finished = static_cast<int32_t>(finished);
    d.slots[1].num_draft_tokens = 9;
    d.add_span(1, 1, 4);
    push(d);
    ngram(queue(), ngram_args(k, min_n, max_n));
    pull(d);
    return {d.slots[1].drafts, d.slots[1].drafts + d.slots[1].num_draft_tokens};
  }
  Ids drafts_for(const Ids& tokens, int k, int min_n, int max_n) {
    return drafts_for(tokens, static_cast<int>(tokens.size()) - 1, kMaxDraftTokens, k, min_n,
                      max_n);
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
    d.slots[s].draft.num_draft_tokens = 3;
    d.params[s].drafter = s == 2 ? 0 : 1;
  }
  d.add_span(2, 1, 4);
  d.add_span(0, 1, 4);
  push(d);
  ngram(queue(), ngram_args(4, 1, 2, 1));
  pull(d);
  EXPECT_EQ(Ids(d.slots[0].drafts, d.slots[0].drafts + d.slots[0].num_draft_tokens),
            (Ids{5, 5, 5}));
  EXPECT_EQ(Ids(d.slots[2].drafts, d.slots[2].drafts + d.slots[2].num_draft_tokens), (Ids{9}));
  EXPECT_EQ(d.slots[1].num_draft_tokens, 1) << "it has no span";
  EXPECT_EQ(d.slots[0].draft.num_draft_tokens, 3);
}

TEST_F(NgramTest, APredictionIsFollowedWhereTheTextStands) {
  const auto drafts = [&](const Ids& tokens, const Ids& prediction, int wanted = 3) {
    StepData d{StepSizes{}};
    d.set_sequence(1, tokens, static_cast<int>(tokens.size()) - 1);
    d.params[1].prompt_len = 2;
    d.set_prediction(1, prediction);
    d.slots[1].draft.num_draft_tokens = wanted;
    d.slots[1].from_prediction = 7;
    d.add_span(1, 1, 4);
    push(d);
    ngram(queue(), ngram_args(8, 5, 5));
    pull(d);
    EXPECT_EQ(d.slots[1].from_prediction, d.slots[1].num_draft_tokens > 0 ? 1 : 0);
    return Ids{d.slots[1].drafts, d.slots[1].drafts + d.slots[1].num_draft_tokens};
  };
  const Ids prediction = {11, 12, 13, 14, 15, 16, 17};
  EXPECT_EQ(drafts({1, 2}, prediction), (Ids{11, 12, 13})) << "nothing is emitted yet";
  EXPECT_EQ(drafts({1, 2, 11, 12}, prediction), (Ids{13, 14, 15}));
  EXPECT_EQ(drafts({1, 2, 11, 12, 50}, prediction), Ids{}) << "another token came";
  EXPECT_EQ(drafts({1, 2, 11, 12, 50, 14, 15}, prediction), (Ids{16, 17})) << "and it goes on";
  EXPECT_EQ(drafts({1, 2, 11, 12, 13, 14, 15, 16, 17}, prediction), Ids{}) << "it has ended";
  EXPECT_EQ(drafts({1, 2, 20, 21}, {20, 21, 30, 20, 21, 31}), (Ids{30, 20, 21}));
  EXPECT_EQ(drafts({1, 2, 40, 41, 42, 20, 21}, {20, 21, 30, 20, 21, 31}), (Ids{31}));
}

TEST_F(NgramTest, RandomPredictionsMatchAPlainReference) {
  std::mt19937 random(5);
  int num_predicted = 0;
  for (int round = 0; round < 150; ++round) {
    StepData d{StepSizes{}};
    std::vector<Ids> history(4), prediction(4);
    for (int s = 0; s < 4; ++s) {
      history[s].resize(1 + random() % 31);
      prediction[s].resize(random() % 32);
      for (int32_t& id : history[s]) id = static_cast<int32_t>(random() % 3);
      for (int32_t& id : prediction[s]) id = static_cast<int32_t>(random() % 3);
      d.set_sequence(s, history[s], static_cast<int>(history[s].size()) - 1);
      d.params[s].prompt_len = 1 + static_cast<int>(random() % history[s].size());
      d.set_prediction(s, prediction[s]);
      d.slots[s].draft.num_draft_tokens = static_cast<int32_t>(random() % 10);
      d.add_span(s, 1, 4);
    }
    const int k = 1 + static_cast<int>(random() % 8);
    const int min_n = 1 + static_cast<int>(random() % 5);
    const int max_n = min_n + static_cast<int>(random() % 4);
    push(d);
    ngram(queue(), ngram_args(k, min_n, max_n));
    pull(d);
    for (int s = 0; s < 4; ++s) {
      const SlotState& state = d.slots[s];
      num_predicted += state.from_prediction;
      ASSERT_EQ(Ids(state.drafts, state.drafts + state.num_draft_tokens),
                reference(history[s], prediction[s], d.params[s].prompt_len,
                          std::min(k, state.draft.num_draft_tokens), min_n, max_n))
          << "round " << round << " slot " << s;
    }
  }
  EXPECT_GT(num_predicted, 100);
  EXPECT_LT(num_predicted, 500);
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
      d.slots[s].draft.num_draft_tokens = static_cast<int32_t>(random() % 10);
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
      ASSERT_EQ(Ids(state.drafts, state.drafts + state.num_draft_tokens),
                reference(history[s], std::min(k, state.draft.num_draft_tokens), min_n, max_n))
          << "round " << round;
    }
  }
}

}  // namespace
}  // namespace foretoken
