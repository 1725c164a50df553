#include "group/rank_place.h"

#include <gtest/gtest.h>

namespace foretoken::group {
namespace {

TEST(RankPlace, EveryRankHasOnePlace) {
  const RankLayout layout{.tp = 2, .pp = 3, .dp = 2};
  ASSERT_EQ(layout.num_ranks(), 12);
  for (int rank = 0; rank < 12; ++rank) EXPECT_EQ(rank_of(layout, place_of(layout, rank)), rank);
  EXPECT_EQ(place_of(layout, 9), (RankPlace{.tp = 1, .pp = 1, .dp = 1}));
}

TEST(RankPlace, SubgroupsContainTheirRank) {
  const RankLayout layout{.tp = 2, .pp = 3, .dp = 2};
  const RankPlace place = place_of(layout, 9);
  EXPECT_EQ(tp_ranks(layout, place), (std::vector<int>{8, 9}));
  EXPECT_EQ(pp_ranks(layout, place), (std::vector<int>{7, 9, 11}));
  EXPECT_EQ(dp_ranks(layout, place), (std::vector<int>{3, 9}));
  EXPECT_EQ(engine_ranks(layout, place), (std::vector<int>{6, 7, 8, 9, 10, 11}));
}

TEST(RankPlace, DescribesOnlyWhatIsDivided) {
  EXPECT_EQ(describe({.tp = 2, .pp = 1, .dp = 3}, 5), "rank 5 (tp 1, dp 2)");
  EXPECT_EQ(describe({}, 0), "rank 0");
  EXPECT_EQ(describe({.dp = 2}, bare_front({.dp = 2})), "the front end");
}

TEST(RankPlace, RefusesSizesThatCannotBe) {
  EXPECT_TRUE(check_layout({.tp = 8, .pp = 4, .dp = 128}).ok());
  EXPECT_NE(check_layout({.tp = 0}).message().find("--tensor-parallel-size"), std::string::npos);
  EXPECT_NE(check_layout({.pp = -1}).message().find("--pipeline-parallel-size"), std::string::npos);
  EXPECT_NE(check_layout({.dp = 0}).message().find("--data-parallel-size"), std::string::npos);
  EXPECT_FALSE(check_layout({.tp = 4096, .pp = 4096, .dp = 4096}).ok());
}

}  // namespace
}  // namespace foretoken::group
