#include "kernels/gemm/gated_act.h"

#include <algorithm>
#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

double gated_act_activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return x * std::erfc(-x * std::sqrt(0.5)) / 2;
    case Activation::kGeluTanh:
      return x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))) / 2;
    default:
      return 0;
  }
  return 0;
}

class GatedActTest : public RowOpTest,
                     public testing::WithParamInterface<std::tuple<Activation, DType>> {};

TEST_P(GatedActTest, MatchesDoubleAlsoForLargeValues) {
  const auto [activation, dtype] = GetParam();
  constexpr int kMaxRows = 4, kRows = 3, kSize = 1077;
  auto x = random_floats(kMaxRows * 2 * kSize, 1, 4.0f);
  x[0] = 200.0f;
  x[1] = -200.0f;
  x[2] = 0.0f;
  x[3] = 1e30f;
  x[4] = -1e30f;
  const size_t out_bytes = kMaxRows * kSize * dtype_size(dtype);
  uint8_t* out = marked(out_bytes);
  gated_act(queue(), {counts(kRows), to_device(x), out, kMaxRows, kSize, activation, dtype});
  const auto bytes = read(out, out_bytes);
  const auto y = to_floats(bytes, dtype);
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kSize; ++i) {
      const double gate = x[r * 2 * kSize + i], up = x[r * 2 * kSize + kSize + i];
      const double want = gated_act_activated(activation, gate) * up;
      ASSERT_NEAR(y[r * kSize + i], want, std::abs(want) * storage_error(dtype) + 1e-6) << gate;
    }
  }
  expect_marked(bytes, kRows * kSize * dtype_size(dtype));
}

TEST_P(GatedActTest, RowsAreBitEqualAloneAndInABatch) {
  const auto [activation, dtype] = GetParam();
  constexpr int kRows = 5, kSize = 333;
  const auto x = random_floats(kRows * 2 * kSize, 2, 3.0f);
  const size_t row_bytes = kSize * dtype_size(dtype);
  uint8_t* out = marked(kRows * row_bytes);
  gated_act(queue(), {counts(kRows), to_device(x), out, kRows, kSize, activation, dtype});
  const auto together = read(out, kRows * row_bytes);
  for (int r = 0; r < kRows; ++r) {
    const std::vector<float> row(x.begin() + r * 2 * kSize, x.begin() + (r + 1) * 2 * kSize);
    gated_act(queue(), {counts(1), to_device(row), out, 1, kSize, activation, dtype});
    const auto alone = read(out, row_bytes);
    ASSERT_EQ(std::memcmp(alone.data(), together.data() + r * row_bytes, row_bytes), 0) << r;
  }
}

class GatedActLimitsTest : public RowOpTest {};

// As of Step 3.5, of activated gates and of ups.
TEST_F(GatedActLimitsTest, CutGatesAndUps) {
  constexpr int kRows = 2, kSize = 61;
  constexpr GateClamp kClamp{1.5f, 1, 0.7f, 0};
  const auto x = random_floats(kRows * 2 * kSize, 4, 2.0f);
  float* out = allocate<float>(kRows * kSize);
  gated_act(queue(), {.counts = counts(kRows),
                      .gate_up = to_device(x),
                      .out = out,
                      .max_rows = kRows,
                      .size = kSize,
                      .activation = Activation::kClampedSilu,
                      .out_dtype = DType::kF32,
                      .clamp = kClamp});
  const auto y = read(out, kRows * kSize);
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kSize; ++i) {
      const double gate = std::min(x[r * 2 * kSize + i], kClamp.limit);
      const double up = std::clamp(x[r * 2 * kSize + kSize + i], -kClamp.up_limit, kClamp.up_limit);
      const double want = gated_act_activated(Activation::kSilu, gate) * up;
      ASSERT_NEAR(y[r * kSize + i], want, std::abs(want) * 1e-6 + 1e-6) << gate;
    }
  }
}

// As of Kimi K3; ups alone may go unbounded.
TEST_F(GatedActLimitsTest, BendGatesAndUps) {
  constexpr int kRows = 2, kSize = 61;
  const auto x = random_floats(kRows * 2 * kSize, 5, 6.0f);
  float* out = allocate<float>(kRows * kSize);
  for (const float up_limit : {25.0f, 0.0f}) {
    gated_act(queue(), {.counts = counts(kRows),
                        .gate_up = to_device(x),
                        .out = out,
                        .max_rows = kRows,
                        .size = kSize,
                        .activation = Activation::kSitu,
                        .out_dtype = DType::kF32,
                        .clamp = {.limit = 4, .up_limit = up_limit}});
    const auto y = read(out, kRows * kSize);
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < kSize; ++i) {
        const double gate = x[r * 2 * kSize + i], raw = x[r * 2 * kSize + kSize + i];
        const double up = up_limit > 0 ? up_limit * std::tanh(raw / up_limit) : raw;
        const double want = 4 * std::tanh(gate / 4) / (1 + std::exp(-gate)) * up;
        ASSERT_NEAR(y[r * kSize + i], want, std::abs(want) * 1e-6 + 1e-6) << gate;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GatedActTest,
                         testing::Combine(testing::Values(Activation::kSilu, Activation::kGelu,
                                                          Activation::kGeluTanh),
                                          testing::Values(DType::kF32, DType::kBF16)));

}  // namespace
}  // namespace foretoken
