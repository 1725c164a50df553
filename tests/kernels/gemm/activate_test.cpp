#include "kernels/gemm/activate.h"

#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

const std::vector<float> kParameters = {0.4f, -0.7f, 0.5f, -1e-6f};

double activated(Activation activation, double x) {
  const auto softplus = [](double v) { return std::log1p(std::exp(v)); };
  const double beta = kParameters[2];
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return x * std::erfc(-x * std::sqrt(0.5)) / 2;
    case Activation::kGeluTanh:
      return x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))) / 2;
    case Activation::kReluSquared:
      return x > 0 ? x * x : 0;
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kXielu:
      if (x > 0) return softplus(kParameters[0]) * x * x + beta * x;
      return (std::expm1(std::min(x, double(kParameters[3]))) - x) *
                 (beta + softplus(kParameters[1])) +
             beta * x;
    case Activation::kClampedSilu:  // of gates alone
    case Activation::kSitu:
    case Activation::kGeluShare:
      break;
  }
  return 0;
}

class ActivateTest : public RowOpTest,
                     public testing::WithParamInterface<std::tuple<Activation, DType>> {};

TEST_P(ActivateTest, MatchesDouble) {
  const auto [activation, dtype] = GetParam();
  constexpr int kMaxRows = 4, kRows = 3, kSize = 1077;
  auto x = random_floats(kMaxRows * kSize, 1, 4.0f);
  x[0] = 100.0f;
  x[1] = -100.0f;
  x[2] = 0.0f;
  const size_t out_bytes = kMaxRows * kSize * dtype_size(dtype);
  uint8_t* out = marked(out_bytes);
  activate(queue(), {counts(kRows), to_device(x), out, kMaxRows, kSize, activation, dtype,
                     to_device(kParameters)});
  const auto bytes = read(out, out_bytes);
  const auto y = to_floats(bytes, dtype);
  for (int i = 0; i < kRows * kSize; ++i) {
    const double want = activated(activation, x[i]);
    ASSERT_NEAR(y[i], want, std::abs(want) * storage_error(dtype) + 2e-6) << x[i];
  }
  expect_marked(bytes, kRows * kSize * dtype_size(dtype));
}

TEST_P(ActivateTest, RowsAreBitEqualAloneAndInABatch) {
  const auto [activation, dtype] = GetParam();
  constexpr int kRows = 5, kSize = 333;
  const auto x = random_floats(kRows * kSize, 2, 3.0f);
  const float* parameters = to_device(kParameters);
  const size_t row_bytes = kSize * dtype_size(dtype);
  uint8_t* out = marked(kRows * row_bytes);
  activate(queue(),
           {counts(kRows), to_device(x), out, kRows, kSize, activation, dtype, parameters});
  const auto together = read(out, kRows * row_bytes);
  for (int r = 0; r < kRows; ++r) {
    const std::vector<float> row(x.begin() + r * kSize, x.begin() + (r + 1) * kSize);
    activate(queue(), {counts(1), to_device(row), out, 1, kSize, activation, dtype, parameters});
    const auto alone = read(out, row_bytes);
    ASSERT_EQ(std::memcmp(alone.data(), together.data() + r * row_bytes, row_bytes), 0) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ActivateTest,
    testing::Combine(testing::Values(Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
                                     Activation::kReluSquared, Activation::kXielu,
                                     Activation::kRelu, Activation::kTanh, Activation::kSigmoid),
                     testing::Values(DType::kF32, DType::kBF16)));

}  // namespace
}  // namespace foretoken
