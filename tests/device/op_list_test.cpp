#include "device/op_list.h"

#include <gtest/gtest.h>

#include <cstring>

namespace foretoken {
namespace {

TEST(OpList, KeepsOpsAndHandsThemOn) {
  OpList first;
  for (int i = 0; i < 3; ++i) {
    int value = 10 + i;
    first.launch_op(static_cast<uint16_t>(i), &value, sizeof value);
    value = 0;  // the list has a copy
  }
  OpList second;
  launch_ops(second, std::span(first.ops()).subspan(1));
  ASSERT_EQ(second.ops().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    int value = 0;
    ASSERT_EQ(second.ops()[i].args_bytes, sizeof value);
    std::memcpy(&value, second.ops()[i].args.data(), sizeof value);
    EXPECT_EQ(second.ops()[i].op, i + 1);
    EXPECT_EQ(value, 11 + static_cast<int>(i));
  }
}

TEST(OpListDeathTest, TakesNothingElse) {
  OpList list;
  EXPECT_DEATH(list.fill(nullptr, 0, 1), "nothing but ops");
}

}  // namespace
}  // namespace foretoken
