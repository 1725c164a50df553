#include "kernels/rows/mask_keys.h"

#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

class MaskKeysTest : public RowOpTest {};

TEST_F(MaskKeysTest, TermsStandInTwoElementsOfEachKey) {
  constexpr int kMaxRows = 4, kRows = 3, kHeads = 4, kKvHeads = 2, kDim = 16, kElement = 9;
  constexpr int kStride = (kHeads + 2 * kKvHeads) * kDim;
  constexpr float kScale = 0.3f;
  const auto x = random_floats(kMaxRows * kStride, 1);
  constexpr int kFirst = 1, kStepStride = 5;  // of the heads among those of all ranks
  auto steps = random_floats(kMaxRows * kStepStride, 2, 3.0f);
  steps[kFirst + 1] = 25;  // where exp is no longer needed
  const std::vector<float> rates = {0.4f, -0.2f};
  float* memory = to_device(x);
  mask_keys(queue(), {counts(kRows), memory, to_device(steps) + kFirst, to_device(rates), kMaxRows,
                      kHeads, kKvHeads, kDim, kElement, kScale, kStepStride});
  const auto y = read(memory, x.size());
  std::vector<float> rest = y;
  for (int r = 0; r < kRows; ++r) {
    for (int h = 0; h < kHeads + kKvHeads; ++h) {
      const size_t at = static_cast<size_t>(r * kStride + h * kDim + kElement);
      const double first = y[at], second = y[at + 1];
      rest[at] = x[at];
      rest[at + 1] = x[at + 1];
      if (h < kHeads) {
        EXPECT_EQ(first, 1);
        EXPECT_EQ(second, 1);
        continue;
      }
      const int key = h - kHeads;
      const double step = steps[static_cast<size_t>(r * kStepStride + kFirst + key)];
      const double soft = std::log1p(std::exp(step));
      const double want = std::exp(double{rates[static_cast<size_t>(key)]} * soft) / kScale;
      EXPECT_NEAR(first + second, want, 1e-5 * want) << r << " " << key;
      EXPECT_LE(std::abs(second), want / 256);
    }
  }
  EXPECT_EQ(rest, x);
}

}  // namespace
}  // namespace foretoken
