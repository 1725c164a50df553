#include "model/files/forms/made_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/bfloat16.h"
#include "model/files/containers/safetensors.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

// A matrix in memory.
struct InMemory {
  InMemory(std::vector<int64_t> shape, std::vector<float> given) : values(std::move(given)) {
    view.name = "x.weight";
    view.shape = std::move(shape);
    view.dtype_name = "F32";
    view.data = reinterpret_cast<const std::byte*>(values.data());
    view.num_bytes = std::ssize(values) * 4;
  }
  std::vector<float> values;
  TensorView view;
};

std::vector<float> waves(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<float>(i * i)));
  return values;
}

std::vector<float> read_values(const MadeTensor& tensor, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::vector<std::byte> raw;
  EXPECT_TRUE(tensor.read_elements(first, count, DType::kF32, values.data(), raw).ok());
  return values;
}

TEST(MadeTensor, RowsOfLengthOne) {
  const InMemory plain({3, 2}, {3, 4, 0, 0, -5, 12});
  const MadeTensor unit(plain.view, Making::kUnitRows);
  EXPECT_EQ(unit.shape(), (std::vector<int64_t>{3, 2}));
  const std::vector<float> want = {0.6F, 0.8F, 0, 0, -5 / 13.0F, 12 / 13.0F};
  EXPECT_EQ(read_values(unit, 0, 6), want);
  EXPECT_EQ(read_values(unit, 1, 4), (std::vector<float>{want[1], 0, 0, want[4]}));
}

TEST(MadeTensor, ColumnsTimesNumbersOfTheirOwn) {
  const InMemory plain({2, 3}, {1, 2, 3, 4, 5, 6});
  const MadeTensor scaled(plain.view, std::vector<float>{2, -1, 0.5F});
  EXPECT_EQ(scaled.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(scaled.is_quantized());
  EXPECT_EQ(read_values(scaled, 0, 6), (std::vector<float>{2, -2, 1.5F, 8, -5, 3}));
  EXPECT_EQ(read_values(scaled, 2, 3), (std::vector<float>{1.5F, 8, -5}));
}

TEST(MadeTensor, RowsPlusOne) {
  const InMemory plain({2, 3}, {1, 2, 3, 4, 5, 6});
  const MadeTensor shifted(plain.view, std::vector<float>{2, -1, 0.5F}, Making::kShiftedRows);
  EXPECT_EQ(shifted.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(read_values(shifted, 1, 4), (std::vector<float>{1, 3.5F, 6, 4}));
}

// 1.5 and 0.5 times the mean round to even.
TEST(MadeTensor, TernaryTimesTheMeanMagnitude) {
  const InMemory plain({2, 4}, {1, -1, 0.5F, -0.5F, 2, 0, 0.25F, -2.75F});
  const MadeTensor ternary(plain.view, Making::kTernary);
  EXPECT_EQ(read_values(ternary, 0, 8), (std::vector<float>{1, -1, 0, 0, 1, 0, 0, -1}));
  EXPECT_EQ(read_values(ternary, 4, 1), (std::vector<float>{1}));
  const InMemory zeros({1, 2}, {0, 0});
  EXPECT_EQ(read_values(MadeTensor(zeros.view, Making::kTernary), 0, 2),
            (std::vector<float>{0, 0}));
}

// Over more rows than are made at once, from any place, in both types.
TEST(MadeTensor, ProductsWithAFactor) {
  constexpr int64_t kRows = 21, kInner = 3, kCols = 5;
  const InMemory plain({kRows, kInner}, waves(kRows * kInner));
  const std::vector<float> factor = waves(kInner * kCols);
  const MadeTensor product(plain.view, factor, kCols);
  EXPECT_EQ(product.shape(), (std::vector<int64_t>{kRows, kCols}));
  const std::vector<float> got = read_values(product, 0, kRows * kCols);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kCols; ++c) {
      double want = 0;
      for (int64_t k = 0; k < kInner; ++k) {
        want += double(plain.values[size_t(r * kInner + k)]) * factor[size_t(k * kCols + c)];
      }
      EXPECT_NEAR(got[size_t(r * kCols + c)], want, 1e-6) << r << " " << c;
    }
  }
  const std::vector<float> part = read_values(product, 38, 47);
  EXPECT_EQ(part, std::vector<float>(got.begin() + 38, got.begin() + 38 + 47));
  uint16_t half = 0;
  std::vector<std::byte> raw;
  ASSERT_TRUE(product.read_elements(7, 1, DType::kBF16, &half, raw).ok());
  EXPECT_EQ(half, bf16_from_float(got[7]));
}

// Two heads of two rows, or columns, become heads of three.
TEST(MadeTensor, HeadsWithZerosBehindThem) {
  const InMemory plain({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const MadeTensor rows(plain.view, Making::kPaddedRows, {2, 3, 0.5F});
  EXPECT_EQ(rows.shape(), (std::vector<int64_t>{6, 2}));
  EXPECT_EQ(read_values(rows, 0, 12),
            (std::vector<float>{0.5F, 1, 1.5F, 2, 0, 0, 2.5F, 3, 3.5F, 4, 0, 0}));
  EXPECT_EQ(read_values(rows, 3, 5), (std::vector<float>{2, 0, 0, 2.5F, 3}));
  const InMemory wide({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const MadeTensor columns(wide.view, Making::kPaddedColumns, {2, 3});
  EXPECT_EQ(columns.shape(), (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(read_values(columns, 0, 12), (std::vector<float>{1, 2, 0, 3, 4, 0, 5, 6, 0, 7, 8, 0}));
}

// One factor of a matrix, or one of each of several.
TEST(MadeTensor, ScaledMatrices) {
  const InMemory one({2, 2}, {1, 2, 3, 4});
  const MadeTensor scaled(one.view, std::vector<float>{0.5F}, Making::kScaledMatrices);
  EXPECT_EQ(scaled.shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(read_values(scaled, 0, 4), (std::vector<float>{0.5F, 1, 1.5F, 2}));
  const InMemory several({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const MadeTensor each(several.view, std::vector<float>{2, 10}, Making::kScaledMatrices);
  EXPECT_EQ(each.shape(), (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(read_values(each, 0, 8), (std::vector<float>{2, 4, 6, 8, 50, 60, 70, 80}));
  EXPECT_EQ(read_values(each, 3, 2), (std::vector<float>{8, 50}));
}

// Views of such tensors are read as any other.
TEST(MadeTensor, IsReadByItsView) {
  const InMemory plain({2, 2}, {3, 4, 6, 8});
  const MadeTensor unit(plain.view, Making::kUnitRows);
  const TensorView view = made_view(plain.view, unit);
  EXPECT_EQ(view.name, "x.weight");
  EXPECT_TRUE(check_convertible(view).ok());
  std::vector<float> values(2);
  std::vector<std::byte> raw;
  ASSERT_TRUE(read_elements(view, 1, 2, DType::kF32, values.data(), raw).ok());
  EXPECT_EQ(values, (std::vector<float>{0.8F, 0.6F}));
}

}  // namespace
}  // namespace foretoken
