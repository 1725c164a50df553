#include "kernels/linear/linear_shape.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(LinearShape, PackedRowsHoldQueriesKeysValuesDecaysAndScales) {
  const LinearShape by_head{2, 4, 8, 16, false, true, true};
  EXPECT_EQ(by_head.k_offset(), 16);
  EXPECT_EQ(by_head.v_offset(), 32);
  EXPECT_EQ(by_head.decay_offset(), 32 + 64);
  EXPECT_EQ(by_head.scale_offset(), 32 + 64 + 4);
  EXPECT_EQ(by_head.row_size(), 32 + 64 + 4 + 4);
  EXPECT_EQ(by_head.update_size(), by_head.row_size() - 16);
  EXPECT_EQ(by_head.state_size(), 4 * 8 * 16);
  const LinearShape by_channel{2, 2, 8, 16, true, false, true};
  EXPECT_EQ(by_channel.decay_size(), 16);
  EXPECT_EQ(by_channel.row_size(), 32 + 32 + 16) << "there are no scales";
}

}  // namespace
}  // namespace foretoken
