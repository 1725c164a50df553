#include "kernels/rows/match_magnitude.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/row_ops.h"

namespace foretoken {
namespace {

class MatchMagnitudeTest : public RowOpTest, public testing::WithParamInterface<int> {};

double mean_square_of(const float* x, int size) {
  double sum = 0;
  for (int i = 0; i < size; ++i) sum += double(x[i]) * x[i] / size;
  return sum;
}

TEST_P(MatchMagnitudeTest, MatchesDouble) {
  const int size = GetParam();
  constexpr int kMaxRows = 4, kRows = 3;
  auto x = random_floats(size_t{kMaxRows} * size, 1, 2.0f);
  std::fill_n(x.begin() + size, size, 1e-4f);  // below the least
  const auto like = random_floats(size_t{kMaxRows} * size, 2, 5.0f);
  float* memory = to_device(x);
  match_magnitude(queue(), {counts(kRows), memory, to_device(like), kMaxRows, size, 1e-5f});
  const auto y = read(memory, x.size());
  for (int r = 0; r < kRows; ++r) {
    const double own = std::max(mean_square_of(x.data() + r * size, size), 1e-5);
    const double factor = std::sqrt(mean_square_of(like.data() + r * size, size) / own);
    for (int i = r * size; i < (r + 1) * size; ++i) {
      ASSERT_NEAR(y[i], x[i] * factor, std::abs(x[i] * factor) * 1e-5) << i;
    }
  }
  for (int i = kRows * size; i < kMaxRows * size; ++i) ASSERT_EQ(y[i], x[i]) << i;
}

TEST_P(MatchMagnitudeTest, RowsAreBitEqualAloneAndInABatch) {
  const int size = GetParam();
  constexpr int kRows = 3;
  const auto x = random_floats(size_t{kRows} * size, 3);
  const auto like = random_floats(size_t{kRows} * size, 4);
  const auto row_of = [&](const std::vector<float>& rows, int r) {
    return to_device(std::vector<float>(rows.begin() + r * size, rows.begin() + (r + 1) * size));
  };
  float* memory = to_device(x);
  match_magnitude(queue(), {counts(kRows), memory, to_device(like), kRows, size, 1e-5f});
  const auto together = read(memory, x.size());
  for (int r = 0; r < kRows; ++r) {
    float* row = row_of(x, r);
    match_magnitude(queue(), {counts(1), row, row_of(like, r), 1, size, 1e-5f});
    const auto alone = read(row, size);
    ASSERT_EQ(std::memcmp(alone.data(), together.data() + r * size, size * sizeof(float)), 0) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MatchMagnitudeTest, testing::Values(5, 64, 1003));

}  // namespace
}  // namespace foretoken
