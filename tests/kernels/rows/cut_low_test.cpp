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

// Two parts of a row, each by the moments of both, are those of the whole row.
TEST_P(CutLowTest, PartsGoByTheMomentsOfAll) {
  const int size = GetParam();
  constexpr int kRows = 2, kEntries = 5;
  const auto x = random_floats(size_t{kRows} * 2 * size, 3, 2.0f);
  float* whole = to_device(x);
  cut_low(queue(), {counts(kRows), whole, kRows, 2 * size, 2 * size, 0.4f});
  const auto want = read(whole, x.size());
  std::vector<float> moments(size_t{kRows} * kEntries);
  for (int r = 0; r < kRows; ++r) {
    for (int part = 0; part < 2; ++part) {
      const float* own = x.data() + (2 * r + part) * size;
      double mean = 0, apart = 0;
      for (int i = 0; i < size; ++i) mean += double(own[i]) / size;
      for (int i = 0; i < size; ++i) apart += std::pow(own[i] - mean, 2);
      moments[r * kEntries + 2 * part] = float(mean);
      moments[r * kEntries + 2 * part + 1] = float(apart);
    }
  }
  for (int part = 0; part < 2; ++part) {
    std::vector<float> own;
    for (int r = 0; r < kRows; ++r) {
      const auto first = x.begin() + (2 * r + part) * size;
      own.insert(own.end(), first, first + size);
    }
    float* memory = to_device(own);
    cut_low(queue(),
            {counts(kRows), memory, kRows, size, size, 0.4f, to_device(moments), 2, kEntries});
    const auto got = read(memory, own.size());
    for (int i = 0; i < kRows * size; ++i) {
      const int at = (2 * (i / size) + part) * size + i % size;
      ASSERT_NEAR(got[i], want[at], 1e-5) << part << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CutLowTest, testing::Values(1, 48, 1003));

}  // namespace
}  // namespace foretoken
