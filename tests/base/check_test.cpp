#include "base/check.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Check, PassesWhenTrueAndEvaluatesOnce) {
  int calls = 0;
  FT_CHECK(++calls == 1);
  FT_CHECK_MSG(++calls == 2, "unused");
  EXPECT_EQ(calls, 2);
}

TEST(CheckDeathTest, NamesPlaceAndCondition) {
  const int rows = 3;
  EXPECT_DEATH(FT_CHECK(rows == 4), "check_test.cpp:[0-9]+: check failed: rows == 4");
}

TEST(CheckDeathTest, ShowsTheDetail) {
  EXPECT_DEATH(FT_CHECK_MSG(false, std::string("block ") + "17"), "check failed: false: block 17");
}

}  // namespace
}  // namespace foretoken
