#include "device/tensor.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Tensor, CountsBytes) {
  float data[6] = {};
  const Tensor tensor{data, DType::kBF16, 3, 2};
  EXPECT_EQ(tensor.num_bytes(), 12);
  EXPECT_EQ(tensor.as<float>(), data);
}

}  // namespace
}  // namespace foretoken
