#include "gguf/vocabulary/piece_merges.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(PieceMerges, BestScoreFirstThenTheLongestLeftPart) {
  const auto merges =
      piece_merges({"a", "b", "ab", "aa", "aab", "\u00e9", "\u00e9a"}, {0, 0, -1, -2, -3, 0, -1});
  EXPECT_EQ(merges,
            nlohmann::json::parse(R"([["é","a"],["a","b"],["a","a"],["aa","b"],["a","ab"]])"));
}

}  // namespace
}  // namespace foretoken
