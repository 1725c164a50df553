#include "convert/awq_matrix.h"

#include <gtest/gtest.h>

#include <random>

#include "base/half.h"
#include "convert/int_matrix.h"
#include "model/files/forms/packed_tensor.h"

namespace foretoken {
namespace {

constexpr int64_t kAwqRows = 24, kAwqCols = 64, kAwqGroup = 32;

TensorView matrix_view(const void* data, const char* dtype, std::vector<int64_t> shape,
                       int64_t size) {
  TensorView view;
  view.name = "m";
  view.dtype_name = dtype;
  view.dtype = size == 2                     ? FileDType::kF16
               : std::string(dtype) == "F32" ? FileDType::kF32
                                             : FileDType::kOther;
  view.shape = std::move(shape);
  view.data = static_cast<const std::byte*>(data);
  view.num_bytes = view.num_elements() * size;
  return view;
}

std::vector<float> weights_of_both_signs() {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.02F, 0.05F);
  std::vector<float> weights(kAwqRows * kAwqCols);
  for (float& weight : weights) weight = normal(random);
  return weights;
}

// The reader of AutoAWQ's layout finds the numbers that were rounded, each in its place.
TEST(AwqMatrix, IsReadAsItWasRounded) {
  const std::vector<float> weights = weights_of_both_signs();
  const TensorView view = matrix_view(weights.data(), "F32", {kAwqRows, kAwqCols}, 4);
  const auto matrix = quantize_awq(TensorRows(view), kAwqGroup);
  const auto ints = round_to_ints(TensorRows(view), {4, kAwqGroup, true});
  ASSERT_TRUE(matrix.ok() && ints.ok());
  const AwqMatrix& m = matrix.value();
  const int64_t groups = kAwqCols / kAwqGroup, words = kAwqRows / kAwqPack;
  const TensorView codes = matrix_view(m.codes.data(), "I32", {kAwqCols, words}, 4);
  const TensorView zeros = matrix_view(m.zeros.data(), "I32", {groups, words}, 4);
  const TensorView scales = matrix_view(m.scales.data(), "F16", {groups, kAwqRows}, 2);
  Quantization layout;
  layout.layout = PackLayout::kAwq;
  layout.group = kAwqGroup;
  const auto packed = PackedTensor::create(layout, {&codes, &scales, &zeros});
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  std::vector<float> back(weights.size());
  ASSERT_TRUE(packed.value().read_elements(0, kAwqRows * kAwqCols, DType::kF32, back.data()).ok());
  for (int64_t i = 0; i < kAwqRows * kAwqCols; ++i) {
    const int64_t row = i / kAwqCols, col = i % kAwqCols, group = col / kAwqGroup;
    const auto code = static_cast<float>(ints.value().code(row, col));
    const auto zero = static_cast<float>(ints.value().zero(row, group));
    ASSERT_EQ(back[static_cast<size_t>(i)],
              half_to_float(ints.value().scale(row, group)) * (code - zero))
        << i;
  }
}

// As AutoAWQ orders the rows of a word: 0, 2, 4, 6, 1, 3, 5, 7 from the lowest bits on.
TEST(AwqMatrix, RowsOfAWordLieInTheKernelsOrder) {
  std::vector<float> weights(8 * 8, 0.0F);
  for (int64_t row = 0; row < 8; ++row) {
    weights[static_cast<size_t>(row * 8)] = static_cast<float>(row + 1);
    weights[static_cast<size_t>(row * 8 + 7)] = 15;
  }
  const TensorView view = matrix_view(weights.data(), "F32", {8, 8}, 4);
  const auto matrix = quantize_awq(TensorRows(view), 8);
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix.value().codes[0], 0x86427531u);
  EXPECT_EQ(matrix.value().codes[7], 0xffffffffu);
  EXPECT_EQ(matrix.value().zeros[0], 0u);
}

}  // namespace
}  // namespace foretoken
