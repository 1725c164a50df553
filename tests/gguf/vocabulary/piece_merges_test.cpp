#include "gguf/vocabulary/piece_merges.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(PieceMerges, BestScoreFirstThenIds) {
  const auto merges =
      piece_merges({"a", "b", "ab", "aa", "aab", "\u00e9", "\u00e9a"}, {0, 0, -1, -2, -3, 0, -1});
  EXPECT_EQ(merges,
            nlohmann::json::parse(R"([["a","b"],["é","a"],["a","a"],["a","ab"],["aa","b"]])"));
}

}  // namespace
}  // namespace foretoken
