#include "model/weights/random_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace foretoken {
namespace {

constexpr int64_t kElements = 4096;
constexpr float kDeviation = 0.02f;

std::vector<std::byte> row_of(const QuantForm& form, uint64_t seed, int64_t row) {
  std::vector<std::byte> bytes(static_cast<size_t>(quantized_row_bytes(form, kElements)));
  random_quantized_row(form, seed, row, kElements, kDeviation, bytes.data());
  return bytes;
}

class RandomRowsTest : public testing::TestWithParam<QuantForm> {};

TEST_P(RandomRowsTest, HasTheDeviationAndAMeanOfZero) {
  std::vector<float> values(kElements);
  dequantize_row(GetParam(), row_of(GetParam(), 7, 3).data(), kElements, values.data());
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
  }
  // The middle of 16 codes lies half a step below the zero point of some forms.
  EXPECT_NEAR(sum / kElements, 0, 0.15 * kDeviation);
  EXPECT_NEAR(std::sqrt(squares / kElements), kDeviation, 0.05 * kDeviation);
}

TEST_P(RandomRowsTest, DependsOnSeedAndRow) {
  EXPECT_EQ(row_of(GetParam(), 7, 3), row_of(GetParam(), 7, 3));
  EXPECT_NE(row_of(GetParam(), 7, 3), row_of(GetParam(), 7, 4));
  EXPECT_NE(row_of(GetParam(), 7, 3), row_of(GetParam(), 8, 3));
}

INSTANTIATE_TEST_SUITE_P(Forms, RandomRowsTest,
                         testing::Values(QuantForm{8, GroupScale::kHalf, 32},
                                         QuantForm{4, GroupScale::kHalf, 32},
                                         QuantForm{4, GroupScale::kHalfAndZero, 128},
                                         QuantForm{4, GroupScale::kSuper, 32},
                                         QuantForm{6, GroupScale::kSuperSigned, 16},
                                         QuantForm{4, GroupScale::kHalf, 32, CodeTable::kIq4},
                                         QuantForm{4, GroupScale::kHalf, 32, CodeTable::kE2m1},
                                         QuantForm{8, GroupScale::kFloatOfRow, 1, CodeTable::kE4m3},
                                         QuantForm{8, GroupScale::kFloat, 128, CodeTable::kE4m3}));

// Which is why the deviation is met up to half an octave only.
TEST(RandomRows, PowersOfTwoStayPowers) {
  const QuantForm form{4, GroupScale::kHalf, 32, CodeTable::kE2m1, true};
  const std::vector<std::byte> row = row_of(form, 7, 3);
  for (size_t i = kElements; i < row.size(); i += 2) {
    const int half = std::to_integer<int>(row[i]) | std::to_integer<int>(row[i + 1]) << 8;
    EXPECT_EQ(half & 1023, 0);
    EXPECT_GT(half, 0);
  }
}

}  // namespace
}  // namespace foretoken
