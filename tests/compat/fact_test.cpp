#include "compat/fact.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Fact, IsSoIsNotSoOrIsNotKnown) {
  constexpr Fact unknown, yes = true, no = false;
  EXPECT_TRUE(yes && yes.is_known() && !yes.is_false());
  EXPECT_TRUE(!no && no.is_known() && no.is_false());
  EXPECT_FALSE(unknown || unknown.is_known() || unknown.is_false());
}

}  // namespace
}  // namespace foretoken
