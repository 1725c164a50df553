#include "device/dtype.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(DType, SizesAndNames) {
  EXPECT_EQ(dtype_size(DType::kF32), 4u);
  EXPECT_EQ(dtype_size(DType::kBF16), 2u);
  EXPECT_EQ(dtype_size(DType::kI32), 4u);
  EXPECT_EQ(dtype_size(DType::kU64), 8u);
  EXPECT_EQ(dtype_size(DType::kF16), 2u);
  EXPECT_STREQ(dtype_name(DType::kBF16), "bfloat16");
  EXPECT_STREQ(dtype_name(DType::kF16), "float16");
}

}  // namespace
}  // namespace foretoken
