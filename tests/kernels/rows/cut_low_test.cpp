#include "kernels/rows/cut_low.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/row_ops.h"

namespace foretoken {
namespace {

class CutLowTest : public RowOpTest, public testing::WithParamInterface<int> {};

TEST_P(CutLowTest, MatchesDouble) {
  const int size = GetParam(), stride = size + 3;
  constexpr int kMaxRows = 4, kRows = 3;
  const auto x = random_floats(size_t{kMaxRows} * stride, 1, 2.0f);
  float* memory = to_device(x);
  cut_low(queue(), {counts(kRows), memory, kMaxRows, stride, size, 0.7f});
  const auto y = read(memory, x.size());
  for (int r = 0; r < kRows; ++r) {
    const float* row = x.data() + r * stride;
    double mean = 0, squares = 0;
    for (int i = 0; i < size; ++i) mean += double(row[i]) / size;
    for (int i = 0; i < size; ++i) squares += std::pow(row[i] - mean, 2) / size;
    const double least = mean + 0.7f * std::sqrt(squares);
    for (int i = 0; i < size; ++i) {
      ASSERT_NEAR(y[r * stride + i], std::max(row[i] - least, 0.0), 1e-5) << r << " " << i;
    }
    for (int i = size; i < stride; ++i) ASSERT_EQ(y[r * stride + i], row[i]);
  }
  for (size_t i = size_t{kRows} * stride; i < x.size(); ++i) ASSERT_EQ(y[i], x[i]) << i;
}

TEST_P(CutLowTest, RowsAreBitEqualAloneAndInABatch) {
  const int size = GetParam();
  constexpr int kRows = 3;
  const auto x = random_floats(size_t{kRows} * size, 2);
  float* memory = to_device(x);
  cut_low(queue(), {counts(kRows), memory, kRows, size, size, 1.6f});
  const auto together = read(memory, x.size());
  for (int r = 0; r < kRows; ++r) {
    float* row = to_device(std::vector<float>(x.begin() + r * size, x.begin() + (r + 1) * size));
    cut_low(queue(), {counts(1), row, 1, size, size, 1.6f});
    const auto alone = read(row, size);
    ASSERT_EQ(std::memcmp(alone.data(), together.data() + r * size, size * sizeof(float)), 0) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CutLowTest, testing::Values(1, 48, 1003));

}  // namespace
}  // namespace foretoken
