#include "kernels/draft/prediction_match.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken::prediction_match {
namespace {

using Ids = std::vector<int32_t>;

// A prompt of two tokens, then the output.
struct Sequence {
  Ids tokens;
  Ids prediction;
  Predicted predicted() const {
    return {prediction.data(), static_cast<int32_t>(prediction.size()), 2,
            static_cast<int32_t>(tokens.size())};
  }
  int32_t suffix(int32_t next) const {
    return common_suffix(predicted(), next,
                         [&](int32_t i) { return tokens[static_cast<size_t>(i)]; });
  }
};

TEST(PredictionMatch, NothingEmittedIsTheBeginning) {
  const Sequence sequence{{8, 9}, {1, 2, 3}};
  EXPECT_EQ(sequence.suffix(0), 2);
  EXPECT_EQ(sequence.suffix(1), 0);
}

TEST(PredictionMatch, ASuffixReachesIntoThePrompt) {
  const Sequence sequence{{8, 9, 1, 2}, {1, 2, 3, 1, 2, 4}};
  EXPECT_EQ(sequence.suffix(2), 4);
  EXPECT_EQ(sequence.suffix(5), 2);
  const Sequence other{{8, 9, 7, 8, 9, 1}, {1, 5}};
  EXPECT_EQ(other.suffix(1), 3) << "the prompt as it stands in the sequence";
}

TEST(PredictionMatch, CountsUpToTheMost) {
  Sequence sequence{Ids(100, 4), Ids(200, 4)};
  EXPECT_EQ(sequence.suffix(120), kMaxTokens);
}

TEST(PredictionMatch, KeysPreferLongSuffixesThenNearPlaces) {
  const Sequence sequence{{8, 9, 1, 2, 3, 4, 5}, Ids(20, 0)};
  const Predicted p = sequence.predicted();  // five tokens of output
  EXPECT_EQ(key_of(p, 5, 1, 2), 0u);
  EXPECT_GT(key_of(p, 19, 3, 2), key_of(p, 5, 2, 2));
  EXPECT_GT(key_of(p, 5, 2, 2), key_of(p, 6, 2, 2));
  EXPECT_GT(key_of(p, 6, 2, 2), key_of(p, 4, 2, 2));
  EXPECT_GT(key_of(p, 4, 2, 2), key_of(p, 7, 2, 2));
  for (int32_t next = 0; next < 20; ++next) {
    const uint64_t key = key_of(p, next, 3, 2);
    EXPECT_EQ(next_of(p, key), next);
    EXPECT_EQ(length_of(key), 3);
  }
}

}  // namespace
}  // namespace foretoken::prediction_match
