#include "base/embedding_score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace foretoken {
namespace {

TEST(EmbeddingScore, IsTheCosineOfUnitVectors) {
  const std::vector<float> east = {1, 0};
  const std::vector<float> north = {0, 1};
  const std::vector<float> between = {0.6f, 0.8f};
  EXPECT_EQ(embedding_score(east, east), 1);
  EXPECT_EQ(embedding_score(east, north), 0);
  EXPECT_NEAR(embedding_score(between, north), 0.8, 1e-7);
}

TEST(EmbeddingScore, SumsInDoublePrecision) {
  const std::vector<float> large = {1e4f, 1e-4f, -1e4f};
  const std::vector<float> other = {1e4f, 1, 1e4f};
  EXPECT_NEAR(embedding_score(large, other), 1e-4, 1e-7);
}

TEST(EmbeddingScore, EachTokenCountsByTheNearestOfTheOthers) {
  const std::vector<float> query = {1, 0, 0, 1};
  const std::vector<float> document = {0.5f, 0, 0.25f, 0.75f, 0, -1};
  EXPECT_EQ(token_score(query, document, 2), 0.5 + 0.75);
  EXPECT_EQ(token_score(document, query, 2), 0.5 + 0.75 + 0);
  EXPECT_EQ(token_score(query, {}, 2), 0);
}

}  // namespace
}  // namespace foretoken
