#include "kernels/silu_mul.h"

#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

class SiluMulTest : public RowOpTest, public testing::WithParamInterface<DType> {};

TEST_P(SiluMulTest, MatchesDoubleAlsoForLargeValues) {
  constexpr int kMaxRows = 4, kRows = 3, kSize = 77;
  auto x = random_floats(kMaxRows * 2 * kSize, 1, 4.0f);
  x[0] = 200.0f;
  x[1] = -200.0f;
  x[2] = 0.0f;
  const size_t out_bytes = kMaxRows * kSize * dtype_size(GetParam());
  uint8_t* out = marked(out_bytes);
  silu_mul(queue(), {counts(kRows), to_device(x), out, kMaxRows, kSize, GetParam()});
  const auto bytes = read(out, out_bytes);
  const auto y = to_floats(bytes, GetParam());
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kSize; ++i) {
      const double gate = x[r * 2 * kSize + i];
      const double want = gate / (1 + std::exp(-gate)) * x[r * 2 * kSize + kSize + i];
      ASSERT_NEAR(y[r * kSize + i], want, std::abs(want) * storage_error(GetParam()) + 1e-7) << i;
    }
  }
  expect_marked(bytes, kRows * kSize * dtype_size(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Types, SiluMulTest, testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace foretoken
