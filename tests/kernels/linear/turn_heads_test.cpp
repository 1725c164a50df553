#include "kernels/linear/turn_heads.h"

#include <cmath>
#include <cstring>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kTurnQueries = 3, kTurnKeys = 2, kTurnDim = 24, kTurnRotary = 16, kTurnStride = 131;

class TurnHeadsTest : public RowOpTest {
 protected:
  TurnHeadsArgs args_of(float* x, int rows, bool norms, bool turns) {
    return {.counts = counts(rows),
            .x = x,
            .positions = to_device(positions_),
            .inv_freq = turns ? to_device(frequencies_) : nullptr,
            .q_norm = norms ? to_device(q_norm_) : nullptr,
            .k_norm = norms ? to_device(k_norm_) : nullptr,
            .max_rows = rows,
            .stride = kTurnStride,
            .num_queries = kTurnQueries,
            .num_keys = kTurnKeys,
            .head_dim = kTurnDim,
            .rotary_dim = turns ? kTurnRotary : 0,
            .scaling = 1.1f,
            .eps = 1e-5f};
  }

  // A head behind it, in double.
  std::vector<double> turned(const float* x, const std::vector<float>* norm, double position,
                             bool turns) const {
    std::vector<double> head(x, x + kTurnDim);
    if (norm != nullptr) {
      double squares = 0;
      for (const double value : head) squares += value * value / kTurnDim;
      for (int i = 0; i < kTurnDim; ++i)
        head[size_t(i)] *= (*norm)[size_t(i)] / std::sqrt(squares + 1e-5);
    }
    constexpr int kHalf = kTurnRotary / 2;
    for (int i = 0; turns && i < kHalf; ++i) {
      const double angle = float(position * frequencies_[size_t(i)]);
      const double a = head[size_t(i)], b = head[size_t(kHalf + i)];
      head[size_t(i)] = 1.1 * (a * std::cos(angle) - b * std::sin(angle));
      head[size_t(kHalf + i)] = 1.1 * (b * std::cos(angle) + a * std::sin(angle));
    }
    return head;
  }

  const std::vector<int32_t> positions_ = {0, 5, 1000};
  const std::vector<float> frequencies_ = random_floats(kTurnRotary / 2, 1, 1.0f);
  const std::vector<float> q_norm_ = random_floats(kTurnDim, 2),
                           k_norm_ = random_floats(kTurnDim, 3);
};

TEST_F(TurnHeadsTest, NormsAndTurnsQueriesAndKeysAlone) {
  constexpr int kRows = 3;
  const auto x = random_floats(kRows * kTurnStride, 4, 2.0f);
  for (const bool norms : {false, true}) {
    for (const bool turns : {false, true}) {
      float* memory = to_device(x);
      turn_heads(queue(), args_of(memory, kRows, norms, turns));
      const auto y = read(memory, x.size());
      for (int r = 0; r < kRows; ++r) {
        const int begin = r * kTurnStride;
        for (int h = 0; h < kTurnQueries + kTurnKeys; ++h) {
          const int at = begin + h * kTurnDim;
          const auto* norm = !norms ? nullptr : h < kTurnQueries ? &q_norm_ : &k_norm_;
          const auto want = turned(x.data() + at, norm, positions_[size_t(r)], turns);
          for (int i = 0; i < kTurnDim; ++i) {
            ASSERT_NEAR(y[size_t(at + i)], want[size_t(i)], 3e-4) << r << " " << h << " " << i;
          }
        }
        for (int i = (kTurnQueries + kTurnKeys) * kTurnDim; i < kTurnStride; ++i) {
          ASSERT_EQ(y[size_t(begin + i)], x[size_t(begin + i)]);
        }
      }
    }
  }
}

TEST_F(TurnHeadsTest, RowsAreBitEqualAloneAndInABatch) {
  const auto x = random_floats(3 * kTurnStride, 5);
  float* together = to_device(x);
  turn_heads(queue(), args_of(together, 3, true, true));
  const auto all = read(together, x.size());
  float* alone = to_device(std::vector<float>(x.begin(), x.begin() + kTurnStride));
  turn_heads(queue(), args_of(alone, 1, true, true));
  const auto first = read(alone, kTurnStride);
  EXPECT_EQ(std::memcmp(first.data(), all.data(), kTurnStride * sizeof(float)), 0);
}

}  // namespace
}  // namespace foretoken
