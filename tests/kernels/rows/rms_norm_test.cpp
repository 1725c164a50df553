#include "kernels/rows/rms_norm.h"

#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr float kEps = 1e-5f;

std::vector<double> norm(const float* x, const std::vector<float>& weight) {
  double squares = 0;
  for (size_t i = 0; i < weight.size(); ++i) squares += double(x[i]) * x[i];
  std::vector<double> out;
  for (size_t i = 0; i < weight.size(); ++i) {
    out.push_back(x[i] / std::sqrt(squares / weight.size() + kEps) * weight[i]);
  }
  return out;
}

class RmsNormTest : public RowOpTest, public testing::WithParamInterface<std::pair<int, DType>> {};

TEST_P(RmsNormTest, AddsDeltaAndNormsLiveRows) {
  const auto [hidden, dtype] = GetParam();
  constexpr int kMaxRows = 5, kRows = 3;
  const auto x = random_floats(kMaxRows * hidden, 1);
  const auto delta = random_floats(kMaxRows * hidden, 2);
  const auto weight = random_floats(hidden, 3);
  float* residual = to_device(x);
  const size_t out_bytes = kMaxRows * hidden * dtype_size(dtype);
  uint8_t* out = marked(out_bytes);
  rms_norm(queue(), {counts(kRows), residual, to_device(delta), to_device(weight), out, nullptr, 0,
                     kMaxRows, hidden, kEps, dtype});
  const auto bytes = read(out, out_bytes);
  const auto y = to_floats(bytes, dtype);
  const auto sums = read(residual, x.size());
  for (int i = 0; i < kMaxRows * hidden; ++i) {
    ASSERT_EQ(sums[i], i < kRows * hidden ? x[i] + delta[i] : x[i]) << i;
  }
  for (int r = 0; r < kRows; ++r) {
    const auto want = norm(&sums[r * hidden], weight);
    for (int i = 0; i < hidden; ++i) {
      ASSERT_NEAR(y[r * hidden + i], want[i], std::abs(want[i]) * storage_error(dtype) + 1e-6);
    }
  }
  expect_marked(bytes, kRows * hidden * dtype_size(dtype));
}

TEST_P(RmsNormTest, GathersLogitsRowsFromAnOffset) {
  const auto [hidden, dtype] = GetParam();
  const std::vector<int32_t> index = {4, 0, 3, 1};
  const auto x = random_floats(5 * hidden, 4);
  const auto weight = random_floats(hidden, 5);
  const size_t out_bytes = 4 * hidden * dtype_size(dtype);
  uint8_t* out = marked(out_bytes);
  rms_norm(queue(), {counts(5, 3), to_device(x), nullptr, to_device(weight), out, to_device(index),
                     1, 4, hidden, kEps, dtype});
  const auto bytes = read(out, out_bytes);
  const auto y = to_floats(bytes, dtype);
  for (int r = 0; r < 2; ++r) {
    const auto want = norm(&x[index[1 + r] * hidden], weight);
    for (int i = 0; i < hidden; ++i) {
      ASSERT_NEAR(y[r * hidden + i], want[i], std::abs(want[i]) * storage_error(dtype) + 1e-6);
    }
  }
  expect_marked(bytes, 2 * hidden * dtype_size(dtype));
}

// With a delta the gathered rows are those of the sum, and the residual stays as it is.
TEST_P(RmsNormTest, AddsDeltaToGatheredRowsOnly) {
  const auto [hidden, dtype] = GetParam();
  const std::vector<int32_t> index = {2, 0};
  const auto x = random_floats(3 * hidden, 6);
  const auto delta = random_floats(3 * hidden, 7);
  const float* weight = to_device(random_floats(hidden, 8));
  float* residual = to_device(x);
  const size_t row_bytes = hidden * dtype_size(dtype);
  uint8_t* gathered = marked(2 * row_bytes);
  rms_norm(queue(), {counts(3, 2), residual, to_device(delta), weight, gathered, to_device(index),
                     0, 2, hidden, kEps, dtype});
  const auto got = read(gathered, 2 * row_bytes);
  EXPECT_EQ(read(residual, x.size()), x);
  uint8_t* all = marked(3 * row_bytes);
  rms_norm(queue(), {counts(3), residual, to_device(delta), weight, all, nullptr, 0, 3, hidden,
                     kEps, dtype});
  const auto want = read(all, 3 * row_bytes);
  EXPECT_EQ(std::memcmp(got.data(), want.data() + 2 * row_bytes, row_bytes), 0);
  EXPECT_EQ(std::memcmp(got.data() + row_bytes, want.data(), row_bytes), 0);
}

TEST_P(RmsNormTest, WithoutWeightOnlyAdds) {
  const auto [hidden, dtype] = GetParam();
  const auto x = random_floats(2 * hidden, 9);
  const auto delta = random_floats(2 * hidden, 10);
  float* residual = to_device(x);
  uint8_t* out = marked(2 * hidden * dtype_size(dtype));
  rms_norm(queue(), {counts(2), residual, to_device(delta), nullptr, out, nullptr, 0, 2, hidden,
                     kEps, dtype});
  std::vector<float> sums = x;
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += delta[i];
  EXPECT_EQ(read(residual, sums.size()), sums);
  EXPECT_EQ(read(out, sums.size() * dtype_size(dtype)), typed_data(sums, dtype).bytes);
}

std::vector<double> layer_norm(const float* x, const std::vector<float>& weight,
                               const std::vector<float>& bias) {
  const auto size = static_cast<double>(weight.size());
  double mean = 0, squares = 0;
  for (size_t i = 0; i < weight.size(); ++i) mean += x[i] / size;
  for (size_t i = 0; i < weight.size(); ++i) squares += (x[i] - mean) * (x[i] - mean);
  std::vector<double> out;
  for (size_t i = 0; i < weight.size(); ++i) {
    out.push_back((x[i] - mean) / std::sqrt(squares / size + kEps) * weight[i] + bias[i]);
  }
  return out;
}

// Layer norms, of token rows and of gathered ones, with and without biases.
TEST_P(RmsNormTest, CentresWhereThatIsWanted) {
  const auto [hidden, dtype] = GetParam();
  const auto x = random_floats(3 * hidden, 11);
  const auto delta = random_floats(3 * hidden, 12);
  const auto weight = random_floats(hidden, 13);
  const size_t out_bytes = 2 * hidden * dtype_size(dtype);
  for (const bool gathered : {false, true}) {
    const auto bias = gathered ? std::vector<float>(hidden, 0.0f) : random_floats(hidden, 14);
    const std::vector<int32_t> index = {2, 1};
    float* residual = to_device(x);
    uint8_t* out = marked(out_bytes);
    RmsNormArgs args{counts(2, 2),
                     residual,
                     to_device(delta),
                     to_device(weight),
                     out,
                     gathered ? to_device(index) : nullptr,
                     0,
                     2,
                     hidden,
                     kEps,
                     dtype};
    args.bias = gathered ? nullptr : to_device(bias);
    args.centred = 1;
    args.delta_scale = 0.25f;
    rms_norm(queue(), args);
    const auto y = to_floats(read(out, out_bytes), dtype);
    std::vector<float> sums = x;
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += 0.25f * delta[i];
    for (int r = 0; r < 2; ++r) {
      const auto want = layer_norm(&sums[(gathered ? index[r] : r) * hidden], weight, bias);
      for (int i = 0; i < hidden; ++i) {
        ASSERT_NEAR(y[r * hidden + i], want[i], std::abs(want[i]) * storage_error(dtype) + 3e-6);
      }
    }
    if (gathered) sums = x;
    const auto kept = read(residual, 2 * hidden);
    for (int i = 0; i < 2 * hidden; ++i) ASSERT_NEAR(kept[i], sums[i], 1e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RmsNormTest,
                         testing::Values(std::pair{5, DType::kF32}, std::pair{192, DType::kF32},
                                         std::pair{1000, DType::kBF16}, std::pair{768, DType::kF32},
                                         std::pair{2048, DType::kBF16},
                                         std::pair{8192, DType::kF32},
                                         std::pair{9000, DType::kBF16},
                                         std::pair{4096, DType::kBF16}));

}  // namespace
}  // namespace foretoken
