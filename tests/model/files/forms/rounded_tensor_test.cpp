#include "model/files/forms/rounded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/bfloat16.h"
#include "base/float8.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {
namespace {

// A tensor in memory.
struct Plain {
  Plain(std::vector<int64_t> shape, std::vector<float> given) : values(std::move(given)) {
    view.name = "x.weight";
    view.shape = std::move(shape);
    view.dtype_name = "F32";
    view.data = reinterpret_cast<const std::byte*>(values.data());
    view.num_bytes = std::ssize(values) * 4;
  }
  std::vector<float> values;
  TensorView view;
};

std::vector<float> some_weights(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(std::sin(static_cast<float>(i * i)) *
                     std::exp2(static_cast<float>(i % 7) - 9));
  }
  return values;
}

std::vector<float> elements_of(const RoundedTensor& tensor, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::vector<std::byte> raw;
  EXPECT_TRUE(tensor.read_elements(first, count, DType::kF32, values.data(), raw).ok());
  return values;
}

TEST(RoundedTensor, ScalesAreTheSmallestPowersThatFit) {
  EXPECT_EQ(fp8_scale(448), 1.0f);
  EXPECT_EQ(fp8_scale(std::nextafter(448.0f, 500.0f)), 2.0f);
  EXPECT_EQ(fp8_scale(224), 0.5f);
  EXPECT_EQ(fp8_scale(1), 0x1p-8f);
  EXPECT_EQ(fp8_scale(0), 1.0f);
  EXPECT_EQ(fp8_scale(std::numeric_limits<float>::infinity()), 1.0f);
  EXPECT_EQ(fp8_scale(std::numeric_limits<float>::quiet_NaN()), 1.0f);
  for (const float largest : {3e38f, 1e-44f, 1e-30f}) {
    const float rounded = round_to_fp8(largest, fp8_scale(largest));
    EXPECT_TRUE(std::isfinite(rounded)) << largest;
    EXPECT_NEAR(rounded / largest, largest > 1e-40f ? 1 : 0, 0.0626) << largest;
  }
}

// Each value is the nearest of its channel's grid, which bfloat16 holds without loss.
TEST(RoundedTensor, RowsShareAScale) {
  constexpr int64_t kMatrixRows = 5, kMatrixCols = 12;
  const Plain plain({kMatrixRows, kMatrixCols}, some_weights(kMatrixRows * kMatrixCols));
  const auto tensor = RoundedTensor::create(plain.view, Fp8Channels::kRows).value();
  const std::vector<float> got = elements_of(tensor, 0, kMatrixRows * kMatrixCols);
  std::vector<uint8_t> codes(kMatrixRows * kMatrixCols);
  std::vector<float> scales(kMatrixRows);
  std::vector<std::byte> raw;
  ASSERT_TRUE(tensor.read_codes(0, kMatrixRows, codes.data(), scales.data(), raw).ok());
  for (size_t i = 0; i < got.size(); ++i) {
    const float scale = scales[i / kMatrixCols];
    EXPECT_EQ(got[i], e4m3_value(codes[i]) * scale) << i;
    EXPECT_EQ(codes[i], e4m3_code(plain.values[i] / scale)) << i;
    EXPECT_EQ(got[i], bf16_to_float(bf16_from_float(got[i]))) << i;
  }
  for (int64_t first = 0; first < kMatrixRows * kMatrixCols; first += 7) {
    const int64_t count = std::min<int64_t>(7, kMatrixRows * kMatrixCols - first);
    EXPECT_EQ(elements_of(tensor, first, count),
              std::vector<float>(got.begin() + first, got.begin() + first + count));
  }
  // What is on the grid stays.
  const Plain again({kMatrixRows, kMatrixCols}, got);
  const auto twice = RoundedTensor::create(again.view, Fp8Channels::kRows).value();
  EXPECT_EQ(elements_of(twice, 0, kMatrixRows * kMatrixCols), got);
}

// A stack whose matrices lie as [inputs, outputs]: the transpose of what rows would be.
TEST(RoundedTensor, ColumnsShareAScale) {
  constexpr int64_t kInputs = 6, kOutputs = 4;
  const std::vector<float> weights = some_weights(2 * kInputs * kOutputs);
  std::vector<float> turned;
  for (size_t m = 0; m < 2; ++m) {
    for (size_t o = 0; o < kOutputs; ++o) {
      for (size_t i = 0; i < kInputs; ++i) {
        turned.push_back(weights[(m * kInputs + i) * kOutputs + o]);
      }
    }
  }
  const Plain plain({2, kInputs, kOutputs}, weights), rows({2, kOutputs, kInputs}, turned);
  const auto by_column = RoundedTensor::create(plain.view, Fp8Channels::kColumns).value();
  const auto by_row = RoundedTensor::create(rows.view, Fp8Channels::kRows).value();
  const std::vector<float> got = elements_of(by_column, 0, 48), want = elements_of(by_row, 0, 48);
  for (size_t m = 0; m < 2; ++m) {
    for (size_t o = 0; o < kOutputs; ++o) {
      for (size_t i = 0; i < kInputs; ++i) {
        EXPECT_EQ(got[(m * kInputs + i) * kOutputs + o], want[(m * kOutputs + o) * kInputs + i]);
      }
    }
  }
  EXPECT_EQ(elements_of(by_column, 5, 9), std::vector<float>(got.begin() + 5, got.begin() + 14));
}

// What stays quantised are the same numbers.
TEST(RoundedTensor, RowsThatStayQuantised) {
  constexpr int64_t kNumRows = 3, kNumCols = 20;
  const Plain plain({kNumRows, kNumCols}, some_weights(kNumRows * kNumCols));
  const RoundedTensor tensor = RoundedTensor::create(plain.view, Fp8Channels::kRows).value();
  ASSERT_NE(tensor.form(), nullptr);
  const auto row_bytes = static_cast<size_t>(quantized_row_bytes(*tensor.form(), kNumCols));
  std::vector<std::byte> rows(2 * row_bytes), raw;
  ASSERT_TRUE(tensor.read_quantized(1, 2, rows.data(), raw).ok());
  for (int64_t r = 0; r < 2; ++r) {
    std::vector<float> values(kNumCols);
    dequantize_row(*tensor.form(), rows.data() + static_cast<size_t>(r) * row_bytes, kNumCols,
                   values.data());
    EXPECT_EQ(values, elements_of(tensor, (1 + r) * kNumCols, kNumCols)) << r;
  }
  EXPECT_EQ(RoundedTensor::create(plain.view, Fp8Channels::kColumns).value().form(), nullptr);
}

}  // namespace
}  // namespace foretoken
