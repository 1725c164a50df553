#include "convert/piece_scores.h"

#include <gtest/gtest.h>

#include "gguf/vocabulary/piece_merges.h"

namespace foretoken {
namespace {

TEST(PieceScores, MakeTheSameMerges) {
  const std::vector<std::string> pieces = {"<s>", "a", "b", "c", "ab", "bc", "abc"};
  const std::vector<Merge> merges = {{"a", "b"}, {"b", "c"}, {"a", "bc"}, {"ab", "c"}};
  const auto scores = piece_scores(pieces, merges);
  ASSERT_TRUE(scores.has_value());
  EXPECT_EQ((*scores)[4], 0);
  EXPECT_EQ((*scores)[5], -1);
  EXPECT_EQ((*scores)[6], -2);
  const std::vector<double> wide(scores->begin(), scores->end());
  EXPECT_EQ(piece_merges(pieces, wide).size(), merges.size());
}

TEST(PieceScores, OtherMergesHaveNone) {
  const std::vector<std::string> pieces = {"a", "b", "c", "ab", "bc", "abc"};
  EXPECT_FALSE(piece_scores(pieces, std::vector<Merge>{{"a", "b"}}));
  EXPECT_FALSE(
      piece_scores(pieces, std::vector<Merge>{{"a", "b"}, {"ab", "c"}, {"b", "c"}, {"a", "bc"}}));
}

}  // namespace
}  // namespace foretoken
