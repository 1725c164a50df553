#include "text/token_table.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(TokenTable, BytesAndFlagsGoByPosition) {
  TokenTable table;
  table.add("the", false);
  table.add("", false);
  table.add("<|end|>", true);
  EXPECT_EQ(table.bytes(0), "the");
  EXPECT_EQ(table.bytes(1), "");
  EXPECT_EQ(table.bytes(2), "<|end|>");
  EXPECT_FALSE(table.is_special(0));
  EXPECT_TRUE(table.is_special(2));
}

TEST(TokenTable, IsEmptyOutside) {
  TokenTable table;
  table.add("a", true);
  EXPECT_EQ(table.bytes(1), "");
  EXPECT_EQ(table.bytes(-1), "");
  EXPECT_FALSE(table.is_special(1));
  EXPECT_FALSE(table.is_special(-1));
}

}  // namespace
}  // namespace foretoken
