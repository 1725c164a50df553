#include "kernels/linear/wkv_inputs.h"

#include <algorithm>
#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kWkvHeads = 3, kWkvDim = 20, kWkvWidth = kWkvHeads * kWkvDim, kWkvRows = 4;

double share_of(double x) { return 1 / (1 + std::exp(-x)); }

class WkvInputsTest : public RowOpTest {
 protected:
  static constexpr LinearShape kShape = {.key_heads = kWkvHeads,
                                         .value_heads = kWkvHeads,
                                         .key_dim = kWkvDim,
                                         .value_dim = kWkvDim,
                                         .channel_decay = true,
                                         .removes = true};

  std::vector<float> run(int rows, bool has_shares, float* first_values) {
    const size_t size = size_t(rows) * size_t(kShape.row_size());
    float* out = to_device(std::vector<float>(size, -99));
    wkv_inputs(queue(), {.counts = counts(rows),
                         .r = to_device(r_),
                         .k = to_device(k_),
                         .v = to_device(v_),
                         .decays = to_device(decays_),
                         .rates = to_device(rates_),
                         .shares = has_shares ? to_device(shares_) : nullptr,
                         .first_values = first_values,
                         .key_scale = to_device(key_scale_),
                         .rate_scale = to_device(rate_scale_),
                         .out = out,
                         .shape = kShape,
                         .max_rows = rows});
    return read(out, size);
  }
  static std::vector<float> rows_of_all(uint64_t seed) {
    return random_floats(size_t{kWkvRows} * kWkvWidth, seed, 2.0f);
  }

  const std::vector<float> r_ = rows_of_all(1), k_ = rows_of_all(2), v_ = rows_of_all(3),
                           decays_ = rows_of_all(4), rates_ = rows_of_all(5),
                           shares_ = rows_of_all(6), first_ = rows_of_all(7),
                           key_scale_ = random_floats(kWkvWidth, 8),
                           rate_scale_ = random_floats(kWkvWidth, 9);
};

TEST_F(WkvInputsTest, MakesWhatStatesTakeIn) {
  for (const bool has_shares : {true, false}) {
    float* first_values = to_device(first_);
    const auto got = run(kWkvRows, has_shares, first_values);
    for (size_t at = 0; at < k_.size(); ++at) {
      const size_t row = at / kWkvWidth, column = at % kWkvWidth;
      const size_t head = column / kWkvDim * kWkvDim;
      double squares = 0;
      for (size_t i = head; i < head + kWkvDim; ++i) {
        squares += std::pow(double{k_[row * kWkvWidth + i]} * key_scale_[i], 2);
      }
      const double unit = double{k_[at]} * key_scale_[column] / std::sqrt(squares);
      const double rate = share_of(rates_[at]);
      const double v =
          has_shares ? v_[at] + (double{first_[at]} - v_[at]) * share_of(shares_[at]) : v_[at];
      const float* own = got.data() + row * size_t(kShape.row_size()) + column;
      EXPECT_EQ(own[0], r_[at]);
      EXPECT_NEAR(own[kShape.k_offset()], k_[at] * (1 + (rate - 1) * rate_scale_[column]), 1e-5);
      EXPECT_NEAR(own[kShape.v_offset()], v, 1e-5);
      EXPECT_NEAR(own[kShape.decay_offset()], std::exp(-std::exp(-0.5) * share_of(decays_[at])),
                  1e-6);
      EXPECT_NEAR(own[kShape.removed_offset()], -unit, 1e-5);
      EXPECT_NEAR(own[kShape.returned_offset()], unit * rate, 1e-5);
    }
    EXPECT_EQ(read(first_values, first_.size()), has_shares ? first_ : v_);
  }
}

TEST_F(WkvInputsTest, RowsAreBitEqualAloneAndInABatch) {
  const auto all = run(kWkvRows, true, to_device(first_));
  const auto first = run(1, true, to_device(first_));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin()));
}

}  // namespace
}  // namespace foretoken
