#include "base/comma_list.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace foretoken {
namespace {

TEST(CommaList, HasTheTextsInTheirOrder) {
  EXPECT_EQ(comma_list(std::vector<std::string>{}), "");
  EXPECT_EQ(comma_list(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(comma_list(std::vector<std::string_view>{"a", "b", "c"}), "a, b, c");
}

}  // namespace
}  // namespace foretoken
