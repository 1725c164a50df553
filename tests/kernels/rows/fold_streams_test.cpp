#include "kernels/rows/fold_streams.h"

#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kFoldRows = 3, kFoldMost = 4, kFoldSize = 37, kFoldRounds = 5;
constexpr double kFoldNormEps = 1e-6, kFoldEps = 1e-3;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

class FoldStreamsTest : public RowOpTest, public testing::WithParamInterface<int> {
 protected:
  int count() const { return GetParam(); }
  int width() const { return count() * kFoldSize; }

  void SetUp() override {
    RowOpTest::SetUp();
    const auto made = size_t(num_hyper_weights(count(), StreamWeights::kMix));
    streams_ = random_floats(size_t(kFoldMost * width()), 1);
    fn_ = random_floats(made * size_t(width()), 2, 0.2f);
    base_ = random_floats(made, 3);
    scale_ = {0.7f, 1.3f, 0.9f};
  }
  FoldStreamsArgs args(float* folded, float* weights) {
    return {.counts = counts(kFoldRows),
            .streams = to_device(streams_),
            .fn = to_device(fn_),
            .base = to_device(base_),
            .scale = to_device(scale_),
            .folded = folded,
            .weights = weights,
            .num_streams = count(),
            .max_rows = kFoldMost,
            .size = kFoldSize,
            .rounds = kFoldRounds,
            .norm_eps = static_cast<float>(kFoldNormEps),
            .eps = static_cast<float>(kFoldEps)};
  }
  // Product i of a row, scaled and with its base.
  double biased(int row, int i, int part) const {
    const float* x = &streams_[size_t(row * width())];
    double squares = 0, sum = 0;
    for (int c = 0; c < width(); ++c) {
      squares += double(x[c]) * double(x[c]) / width();
      sum += double(x[c]) * double(fn_[size_t(i * width() + c)]);
    }
    return sum / std::sqrt(squares + kFoldNormEps) * double(scale_[size_t(part)]) +
           double(base_[size_t(i)]);
  }
  double folded(int row, int column) const {
    double sum = 0;
    for (int s = 0; s < count(); ++s) {
      sum += (sigmoid_of(biased(row, s, 0)) + kFoldEps) *
             double(streams_[size_t(row * width() + s * kFoldSize + column)]);
    }
    return sum;
  }
  // Softmax over rows, then columns and rows divided by their sums in turn.
  std::vector<double> mixing(int row) const {
    const auto n = static_cast<size_t>(count());
    std::vector<double> mix(n * n);
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t s = 0; s < n; ++s) {
        mix[j * n + s] = std::exp(biased(row, int(2 * n + j * n + s), 2));
        sum += mix[j * n + s];
      }
      for (size_t s = 0; s < n; ++s) mix[j * n + s] = mix[j * n + s] / sum + kFoldEps;
    }
    for (int round = 0; round < 2 * kFoldRounds - 1; ++round) {
      const bool columns = round % 2 == 0;
      for (size_t a = 0; a < n; ++a) {
        double sum = kFoldEps;
        for (size_t b = 0; b < n; ++b) sum += mix[columns ? b * n + a : a * n + b];
        for (size_t b = 0; b < n; ++b) mix[columns ? b * n + a : a * n + b] /= sum;
      }
    }
    return mix;
  }

  std::vector<float> streams_, fn_, base_, scale_;
};

TEST_P(FoldStreamsTest, RowsSayHowTheirStreamsAreWeighed) {
  const int each = count() * (1 + count());
  float* out = allocate<float>(size_t(kFoldMost * kFoldSize));
  float* weights = allocate<float>(size_t(kFoldMost * each));
  fold_streams(queue(), args(out, weights));
  const auto got = read(out, size_t(kFoldMost * kFoldSize));
  const auto made = read(weights, size_t(kFoldMost * each));
  for (int r = 0; r < kFoldRows; ++r) {
    for (int c = 0; c < kFoldSize; ++c) {
      ASSERT_NEAR(got[size_t(r * kFoldSize + c)], folded(r, c), 2e-5) << r << " " << c;
    }
    const auto mix = mixing(r);
    for (int s = 0; s < count(); ++s) {
      ASSERT_NEAR(made[size_t(r * each + s)], 2 * sigmoid_of(biased(r, count() + s, 1)), 1e-5);
    }
    for (size_t i = 0; i < mix.size(); ++i) {
      ASSERT_NEAR(made[size_t(r * each + count()) + i], mix[i], 1e-5) << r << " " << i;
    }
  }
  for (int c = 0; c < kFoldSize; ++c) EXPECT_EQ(got[size_t(kFoldRows * kFoldSize + c)], 0);
}

// Those of Hy4, whose streams give nothing to each other.
TEST_P(FoldStreamsTest, WithoutRoundsEachStreamKeepsItself) {
  const int each = count() * (1 + count());
  float* out = allocate<float>(size_t(kFoldMost * kFoldSize));
  float* weights = allocate<float>(size_t(kFoldMost * each));
  FoldStreamsArgs own = args(out, weights);
  own.rounds = 0;
  own.gift = 1.5f;
  fold_streams(queue(), own);
  const auto got = read(out, size_t(kFoldMost * kFoldSize));
  const auto made = read(weights, size_t(kFoldMost * each));
  for (int r = 0; r < kFoldRows; ++r) {
    for (int c = 0; c < kFoldSize; ++c) {
      ASSERT_NEAR(got[size_t(r * kFoldSize + c)], folded(r, c), 2e-5) << r << " " << c;
    }
    for (int s = 0; s < count(); ++s) {
      const double gift = 1.5 * sigmoid_of(biased(r, count() + s, 1)) + kFoldEps;
      ASSERT_NEAR(made[size_t(r * each + s)], gift, 1e-5) << r << " " << s;
    }
    for (int i = 0; i < count() * count(); ++i) {
      const bool own_stream = i % (count() + 1) == 0;
      ASSERT_EQ(made[size_t(r * each + count() + i)], own_stream ? 1 : 0) << r << " " << i;
    }
  }
}

// The last one, behind all layers.
TEST_P(FoldStreamsTest, WithoutWeightsOnlyTheFoldedRowIsMade) {
  float* out = allocate<float>(size_t(kFoldMost * kFoldSize));
  fold_streams(queue(), args(out, nullptr));
  const auto got = read(out, size_t(kFoldMost * kFoldSize));
  for (int r = 0; r < kFoldRows; ++r) {
    for (int c = 0; c < kFoldSize; ++c) {
      ASSERT_NEAR(got[size_t(r * kFoldSize + c)], folded(r, c), 2e-5) << r << " " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FoldStreamsTest, testing::Values(2, 3, 4));

}  // namespace
}  // namespace foretoken
