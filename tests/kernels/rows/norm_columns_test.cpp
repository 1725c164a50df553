#include "kernels/rows/norm_columns.h"

#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

struct NormedColumns {
  int column, groups, size, behind;
  bool centred, weighted;
};
constexpr float kColumnEps = 1e-5f;

class NormColumnsTest : public RowOpTest, public testing::WithParamInterface<NormedColumns> {};

TEST_P(NormColumnsTest, MatchesDoubleAndLeavesTheRest) {
  const NormedColumns c = GetParam();
  constexpr int kMaxRows = 4, kRows = 3;
  const int width = c.groups * c.size, stride = c.column + width + c.behind;
  const auto x = random_floats(kMaxRows * stride, 1, 2.0f);
  const auto weight = random_floats(width, 2);
  float* memory = to_device(x);
  norm_columns(queue(), {counts(kRows), memory, c.weighted ? to_device(weight) : nullptr, kMaxRows,
                         stride, c.column, c.groups, c.size, kColumnEps, c.centred ? 1 : 0});
  const auto y = read(memory, x.size());
  std::vector<double> want(x.begin(), x.end());
  for (int group = 0; group < kRows * c.groups; ++group) {
    const int in_row = group % c.groups * c.size;
    double* at = &want[group / c.groups * stride + c.column + in_row];
    double mean = 0, squares = 0;
    for (int i = 0; c.centred && i < c.size; ++i) mean += at[i] / c.size;
    for (int i = 0; i < c.size; ++i) squares += (at[i] - mean) * (at[i] - mean);
    for (int i = 0; i < c.size; ++i) {
      at[i] = (at[i] - mean) / std::sqrt(squares / c.size + kColumnEps);
      if (c.weighted) at[i] *= weight[in_row + i];
    }
  }
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], want[i], 5e-6) << i;
}

TEST_P(NormColumnsTest, RowsAreBitEqualAloneAndInABatch) {
  const NormedColumns c = GetParam();
  constexpr int kRows = 3;
  const int stride = c.column + c.groups * c.size + c.behind;
  const auto x = random_floats(kRows * stride, 3);
  const auto run = [&](int first, int rows) {
    float* memory = to_device(
        std::vector<float>(x.begin() + first * stride, x.begin() + (first + rows) * stride));
    norm_columns(queue(), {counts(rows), memory, nullptr, rows, stride, c.column, c.groups, c.size,
                           kColumnEps, c.centred ? 1 : 0});
    return read(memory, rows * stride);
  };
  const auto all = run(0, kRows);
  for (int r = 0; r < kRows; ++r) {
    const auto one = run(r, 1);
    ASSERT_EQ(std::memcmp(one.data(), &all[r * stride], stride * sizeof(float)), 0) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, NormColumnsTest,
                         testing::Values(NormedColumns{0, 1, 96, 40, false, true},
                                         NormedColumns{64, 2, 16, 32, false, false},
                                         NormedColumns{8, 3, 64, 0, true, true},
                                         NormedColumns{0, 1, 5120, 2048, false, true},
                                         NormedColumns{3, 2, 700, 5, true, false}));

}  // namespace
}  // namespace foretoken
