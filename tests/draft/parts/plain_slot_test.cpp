#include "draft/parts/plain_slot.h"

#include <gtest/gtest.h>

#include "support/test_device.h"

namespace foretoken {
namespace {

TEST(PlainSlot, IsThatOfAllRows) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  Arena arena(*test_device(), MemoryKind::kPinned);
  PlainSlot plain;
  ASSERT_TRUE(plain.take(*test_device(), arena, 3).ok());
  StepTensors rows{};
  BatchState batch{};
  batch.block_size = 16;
  plain.put(&rows, &batch);
  EXPECT_EQ(batch.block_size, 16) << "all else stays";
  EXPECT_EQ(batch.params[0].temperature, 0);
  EXPECT_EQ(batch.slots[0].len, 0);
  for (int row = 0; row < 3; ++row) EXPECT_EQ(rows.row_slot[row], 0);
}

}  // namespace
}  // namespace foretoken
