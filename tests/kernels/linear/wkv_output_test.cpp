#include "kernels/linear/wkv_output.h"

#include <cmath>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kLeftHeads = 3, kLeftDim = 20, kLeftWidth = kLeftHeads * kLeftDim, kLeftRows = 4;

class WkvOutputTest : public RowOpTest {
 protected:
  static constexpr LinearShape kShape = {.key_heads = kLeftHeads,
                                         .value_heads = kLeftHeads,
                                         .key_dim = kLeftDim,
                                         .value_dim = kLeftDim,
                                         .channel_decay = true,
                                         .removes = true};

  std::vector<float> run(int rows, DType dtype) {
    const size_t size = size_t(rows) * kLeftWidth;
    uint8_t* out = marked(size * dtype_size(dtype));
    wkv_output(queue(), {.counts = counts(rows),
                         .left = to_device(left_),
                         .packed = to_device(packed_),
                         .gates = to_device(gates_),
                         .bonus = to_device(bonus_),
                         .weights = to_device(weights_),
                         .biases = to_device(biases_),
                         .out = out,
                         .shape = kShape,
                         .max_rows = rows,
                         .eps = 1e-3f,
                         .dtype = dtype});
    return read_typed(out, size, dtype);
  }

  const std::vector<float> left_ = random_floats(size_t{kLeftRows} * kLeftWidth, 1, 2.0f),
                           packed_ =
                               random_floats(size_t{kLeftRows} * size_t(kShape.row_size()), 2),
                           gates_ = random_floats(size_t{kLeftRows} * kLeftWidth, 3),
                           bonus_ = random_floats(kLeftWidth, 4),
                           weights_ = random_floats(kLeftWidth, 5),
                           biases_ = random_floats(kLeftWidth, 6);
};

TEST_F(WkvOutputTest, NormsHeadsAndAddsWhatTheRowItselfSays) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const auto got = run(kLeftRows, dtype);
    for (size_t at = 0; at < left_.size(); ++at) {
      const size_t row = at / kLeftWidth, column = at % kLeftWidth;
      const size_t head = column / kLeftDim * kLeftDim;
      const float* q = packed_.data() + row * size_t(kShape.row_size());
      double mean = 0, squares = 0, bonus = 0;
      for (size_t i = head; i < head + kLeftDim; ++i) {
        mean += left_[row * kLeftWidth + i] / double{kLeftDim};
        bonus += double{q[i]} * q[size_t(kShape.k_offset()) + i] * bonus_[i];
      }
      for (size_t i = head; i < head + kLeftDim; ++i) {
        squares += std::pow(left_[row * kLeftWidth + i] - mean, 2) / kLeftDim;
      }
      const double normed =
          (left_[at] - mean) / std::sqrt(squares + 1e-3) * weights_[column] + biases_[column];
      const double want = (normed + bonus * q[size_t(kShape.v_offset()) + column]) * gates_[at];
      EXPECT_NEAR(got[at], want, (storage_error(dtype) + 1e-5) * (1 + std::abs(want))) << at;
    }
  }
}

TEST_F(WkvOutputTest, RowsAreBitEqualAloneAndInABatch) {
  const auto all = run(kLeftRows, DType::kF32), first = run(1, DType::kF32);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin()));
}

}  // namespace
}  // namespace foretoken
