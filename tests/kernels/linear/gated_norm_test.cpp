#include "kernels/linear/gated_norm.h"

#include <cmath>
#include <tuple>

#include "support/row_ops.h"

namespace foretoken {
namespace {

// Groups, their size, gate, whether it goes first, weights (0 none, 1 of a group, 2 own), type.
using NormCase = std::tuple<int, int, NormGate, bool, int, DType>;

class GatedNormTest : public RowOpTest, public testing::WithParamInterface<NormCase> {
 protected:
  static constexpr int kGap = 3;  // behind the gates of a row
  static constexpr float kEps = 1e-5f;

  static size_t row_size() {
    return static_cast<size_t>(std::get<0>(GetParam()) * std::get<1>(GetParam()));
  }
  static std::vector<float> x_of(size_t rows) { return random_floats(rows * row_size(), 1, 2.0f); }
  static std::vector<float> gates_of(size_t rows) {
    return random_floats(rows * (row_size() + kGap), 2, 3.0f);
  }
  static std::vector<float> weights() { return random_floats(row_size(), 3); }

  std::vector<float> normed(const std::vector<float>& x, const std::vector<float>& gates, int rows,
                            int max_rows) {
    const auto [groups, size, gate, first, weighted, dtype] = GetParam();
    const size_t count = static_cast<size_t>(max_rows) * row_size();
    uint8_t* out = marked(count * dtype_size(dtype));
    gated_norm(
        queue(),
        {counts(rows), to_device(x), gate == NormGate::kNone ? nullptr : to_device(gates),
         weighted == 0 ? nullptr : to_device(weights()), out, static_cast<int>(row_size()) + kGap,
         max_rows, groups, size, weighted == 2 ? 1 : 0, first ? 1 : 0, gate, kEps, dtype});
    const size_t live = static_cast<size_t>(rows) * row_size();
    expect_marked(read(out, count * dtype_size(dtype)), live * dtype_size(dtype));
    return read_typed(out, live, dtype);
  }
};

double gate_of(NormGate gate, double x) {
  if (gate == NormGate::kNone) return 1;
  return (gate == NormGate::kSilu ? x : 1) / (1 + std::exp(-x));
}

TEST_P(GatedNormTest, MatchesDoubleOnTokenRows) {
  const auto [groups, size, gate, first, weighted, dtype] = GetParam();
  constexpr size_t kRows = 3;
  const auto x = x_of(kRows + 1), gates = gates_of(kRows + 1), w = weights();
  const auto out = normed(x, gates, kRows, kRows + 1);
  const auto group_size = static_cast<size_t>(size);
  for (size_t begin = 0; begin < kRows * row_size(); begin += group_size) {
    const auto factor = [&](size_t i) {
      const size_t row = i / row_size();
      return gate_of(gate, gates[row * (row_size() + kGap) + i % row_size()]);
    };
    double squares = 0;
    for (size_t i = begin; i < begin + group_size; ++i) {
      squares += std::pow(x[i] * (first ? factor(i) : 1), 2);
    }
    for (size_t i = begin; i < begin + group_size; ++i) {
      double want = x[i] * factor(i);
      if (weighted != 0) {
        want *= w[weighted == 2 ? i % row_size() : i - begin] / std::sqrt(squares / size + kEps);
      }
      ASSERT_NEAR(out[i], want, std::abs(want) * 2 * storage_error(dtype) + 1e-30) << i;
    }
  }
}

TEST_P(GatedNormTest, RowsAreBitEqualAloneAndInABatch) {
  constexpr int kRows = 4;
  const auto x = x_of(kRows), gates = gates_of(kRows);
  const auto together = normed(x, gates, kRows, kRows);
  for (size_t r = 0; r < kRows; ++r) {
    const auto row_of = [&](const std::vector<float>& all, size_t width) {
      const auto begin = all.begin() + static_cast<ptrdiff_t>(r * width);
      return std::vector<float>(begin, begin + static_cast<ptrdiff_t>(width));
    };
    const auto alone = normed(row_of(x, row_size()), row_of(gates, row_size() + kGap), 1, 1);
    for (size_t i = 0; i < alone.size(); ++i) {
      ASSERT_EQ(alone[i], together[r * row_size() + i]) << r << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, GatedNormTest,
                         testing::Values(NormCase{4, 128, NormGate::kSilu, false, 1, DType::kF32},
                                         NormCase{2, 100, NormGate::kSigmoid, false, 1,
                                                  DType::kBF16},
                                         NormCase{1, 333, NormGate::kSilu, true, 2, DType::kF32},
                                         NormCase{2, 64, NormGate::kSilu, true, 2, DType::kBF16},
                                         NormCase{3, 21, NormGate::kNone, false, 1, DType::kF32},
                                         NormCase{2, 40, NormGate::kSilu, false, 0, DType::kF32}));

}  // namespace
}  // namespace foretoken
