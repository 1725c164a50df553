#include "kernels/attention/cpu/score_end.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

FT_HOT void end_all(const ScoreEnd& end, float* scores, int count) {
  end_scores(end, scores, count);
}

TEST(ScoreEnd, IsOfTheHeadAndTheDistance) {
  AttentionArgs args{};
  EXPECT_EQ(score_end(args, 3, 9, 4).slope, 0);
  const float slopes[] = {0.5f, 0.25f};
  args.slopes = slopes;
  args.softcap = 2;
  const ScoreEnd end = score_end(args, 1, 9, 4);
  EXPECT_EQ(end.slope, 0.25f);
  EXPECT_EQ(end.softcap, 2);
  EXPECT_EQ(end.first, -5);
}

TEST(ScoreEnd, CapsThenAddsWhatLiesBehind) {
  for (const int count : {1, 7, 8, 16, 61}) {
    for (const float cap : {0.0f, 3.0f}) {
      const std::vector<float> scores = random_floats(static_cast<size_t>(count), 1, 5.0f);
      std::vector<float> ended = scores;
      end_all({cap, 0.125f, -100}, ended.data(), count);
      for (int i = 0; i < count; ++i) {
        const double score = scores[size_t(i)];
        const double capped = cap > 0 ? cap * std::tanh(score / cap) : score;
        EXPECT_NEAR(ended[size_t(i)], capped + 0.125 * (i - 100), 1e-5) << i;
      }
    }
  }
}

// Keys behind a row are as far as those before it.
TEST(ScoreEnd, DistancesAreAlikeOnBothSides) {
  std::vector<float> scores(5, 1.0f);
  end_all({0, 0.5f, -2}, scores.data(), 5);
  EXPECT_EQ(scores, (std::vector<float>{0, 0.5f, 1, 0.5f, 0}));
}

TEST(ScoreEnd, AddsTheBiasOfADistance) {
  std::vector<float> biases(2 * kDistances);
  biases[size_t(kDistances)] = 3;  // far before
  biases[size_t(kDistances + bias_index(-1))] = 5;
  biases[size_t(kDistances + bias_index(1))] = 7;
  biases.back() = 9;  // far behind
  AttentionArgs args{};
  args.distance_bias = biases.data();
  const auto score_at = [&](int position, int key) {
    float score = 1;
    end_all(score_end(args, 1, position, key), &score, 1);
    return score;
  };
  args.kv.context_size = 1;
  EXPECT_EQ(score_at(300, 4), 4);
  EXPECT_EQ(score_at(300, 299), 6);
  EXPECT_EQ(score_at(300, 300), 1);
  EXPECT_EQ(score_at(300, 301), 8);
  EXPECT_EQ(score_at(300, 700), 10);
}

// Of one of several ranks, whose keys lie that many positions apart.
TEST(ScoreEnd, KeysOfARankLieApart) {
  const float slopes[] = {0.25f};
  AttentionArgs args{};
  args.slopes = slopes;
  args.kv.context_size = 4;
  args.kv.context_rank = 3;
  std::vector<float> scores(5, 1.0f);
  end_all(score_end(args, 0, 30, 2), scores.data(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(scores[size_t(i)], 1.0f + 0.25f * static_cast<float>((2 + i) * 4 + 3 - 30)) << i;
  }
}

// Where a split begins changes nothing.
TEST(ScoreEnd, BitsDoNotDependOnWhereItBegins) {
  const std::vector<float> scores = random_floats(64, 2, 5.0f);
  std::vector<float> whole = scores;
  end_all({4.0f, 0.3f, -63}, whole.data(), 64);
  for (const int at : {1, 8, 13, 40}) {
    std::vector<float> parts = scores;
    end_all({4.0f, 0.3f, -63}, parts.data(), at);
    end_all({4.0f, 0.3f, -63 + at}, parts.data() + at, 64 - at);
    EXPECT_EQ(std::memcmp(parts.data(), whole.data(), 64 * sizeof(float)), 0) << at;
  }
}

}  // namespace
}  // namespace foretoken::cpu
