#include "device/row_table.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(RowTable, SaysWhatItMakesAndTakes) {
  const int data = 0;
  EXPECT_FALSE(RowTable().exists());
  EXPECT_FALSE(RowTable().makes(DType::kF32));
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    EXPECT_TRUE((RowTable{&data, dtype}).makes(dtype));
    EXPECT_FALSE((RowTable{&data, dtype, 16}).makes(dtype));
    EXPECT_TRUE((RowTable{&data, dtype, 1, true}).makes(dtype));
    EXPECT_FALSE((RowTable{&data, dtype}).makes(dtype == DType::kF32 ? DType::kBF16 : DType::kF32));
  }
  EXPECT_TRUE((RowTable{&data, DType::kF16}).makes(DType::kF32));
  EXPECT_TRUE((RowTable{&data, DType::kF16, 16}).makes(DType::kF32));
  EXPECT_FALSE((RowTable{&data, DType::kF16}).makes(DType::kBF16));
  EXPECT_EQ((RowTable{&data, DType::kF16, 16}).num_bytes(3, 5), 30);
}

}  // namespace
}  // namespace foretoken
