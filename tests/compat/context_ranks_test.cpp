#include "compat/context_ranks.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

TEST(ContextRanks, ThoseThatReadOneHeadAreCountedInEveryLayer) {
  const struct {
    std::vector<int> kv_heads;
    int num_ranks;
    int alike;
  } cases[] = {{{1}, 4, 4}, {{2}, 4, 2},    {{4}, 4, 1},    {{8}, 4, 1},   {{3}, 4, 1},
               {{}, 4, 4},  {{1, 2}, 4, 2}, {{2, 4}, 8, 2}, {{1, 8}, 8, 1}};
  for (const auto& each : cases) {
    EXPECT_EQ(ranks_with_equal_kv(each.kv_heads, each.num_ranks), each.alike)
        << (each.kv_heads.empty() ? 0 : each.kv_heads[0]) << " heads, " << each.num_ranks;
  }
}

TEST(ContextRanks, PartsOfRowsAreWholeWords) {
  EXPECT_TRUE(divides_rows(64, 4));
  EXPECT_FALSE(divides_rows(65, 1));
  EXPECT_FALSE(divides_rows(66, 2));
  EXPECT_TRUE(divides_rows(68, 2));
}

}  // namespace
}  // namespace foretoken
