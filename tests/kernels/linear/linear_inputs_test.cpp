#include "kernels/linear/linear_inputs.h"

#include <cmath>
#include <tuple>

#include "support/row_ops.h"

namespace foretoken {
namespace {

// Key heads, value heads, key_dim, value_dim, channel_decay, gates, unit, silu, whether the decays
// have biases.
using InputsCase = std::tuple<int, int, int, int, bool, LinearGates, bool, bool, bool>;

class LinearInputsTest : public RowOpTest, public testing::WithParamInterface<InputsCase> {
 protected:
  static constexpr float kScale = 0.25f, kMinStep = 0.01f, kMaxStep = 2.5f, kLowerBound = -5;
  static constexpr int kGap = 5;  // behind what a row holds

  static LinearGates gates() { return std::get<5>(GetParam()); }
  static bool by_delta() {
    return gates() == LinearGates::kDelta || gates() == LinearGates::kBounded;
  }
  static bool unit() { return std::get<6>(GetParam()); }
  static bool silu() { return std::get<7>(GetParam()); }
  static bool biased() { return std::get<8>(GetParam()); }
  static LinearShape shape() {
    const auto& p = GetParam();
    return {std::get<0>(p),
            std::get<1>(p),
            std::get<2>(p),
            std::get<3>(p),
            std::get<4>(p),
            gates() != LinearGates::kFixed,
            true};
  }
  // [queries | keys | values | decays | scales]
  static size_t stride() {
    const LinearShape s = shape();
    return static_cast<size_t>(2 * s.q_size() + s.v_size() + s.decay_size() + s.value_heads + kGap);
  }
  static std::vector<float> rows_of(size_t count) {
    return random_floats(count * stride(), 1, 3.0f);
  }
  static std::vector<float> rates() {
    auto rates = random_floats(static_cast<size_t>(shape().value_heads), 2);
    for (float& rate : rates) rate = std::exp(rate);
    return rates;
  }
  static std::vector<float> biases() {
    return random_floats(static_cast<size_t>(shape().decay_size()), 3);
  }
  std::vector<float> inputs(const std::vector<float>& x, int rows, int max_rows) {
    const LinearShape s = shape();
    const float* memory = to_device(x);
    const float* decay = memory + 2 * s.q_size() + s.v_size();
    const auto width = static_cast<int32_t>(stride());
    const size_t size = static_cast<size_t>(max_rows * s.row_size());
    float* out = to_device(std::vector<float>(size, -99));
    linear_inputs(queue(), {counts(rows),
                            memory,
                            memory + s.q_size(),
                            memory + 2 * s.q_size(),
                            gates() == LinearGates::kFixed ? nullptr : decay,
                            by_delta() ? decay + s.decay_size() : nullptr,
                            to_device(rates()),
                            biased() ? to_device(biases()) : nullptr,
                            out,
                            s,
                            width,
                            width,
                            width,
                            max_rows,
                            gates(),
                            unit() ? 1 : 0,
                            silu() ? 1 : 0,
                            kScale,
                            kMinStep,
                            kMaxStep,
                            1,
                            kLowerBound});
    return read(out, size);
  }
  static double activated(double x) { return silu() ? x / (1 + std::exp(-x)) : x; }
  // Heads of `x` as they are packed.
  static void append_heads(const float* x, int heads, int dim, bool keys, double scale,
                           std::vector<double>* out) {
    for (int head = 0; head < heads; ++head, x += dim) {
      double squares = 1e-6;
      for (int i = 0; i < dim; ++i) squares += std::pow(activated(x[i]), 2);
      const double factor = keys && unit() ? scale / std::sqrt(squares) : scale;
      for (int i = 0; i < dim; ++i) out->push_back(activated(x[i]) * factor);
    }
  }
  static double decay_input(const float* decay, int i) {
    return decay[i] + (biased() ? double{biases()[static_cast<size_t>(i)]} : 0);
  }
  static double step_of(const float* decay, int i) {
    const double x = decay_input(decay, i);
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  static std::vector<double> wanted(const float* x) {
    const LinearShape s = shape();
    std::vector<double> out;
    append_heads(x, s.key_heads, s.key_dim, true, kScale, &out);
    append_heads(x + s.q_size(), s.key_heads, s.key_dim, true, 1, &out);
    append_heads(x + 2 * s.q_size(), s.value_heads, s.value_dim, false, 1, &out);
    const float* decay = x + 2 * s.q_size() + s.v_size();
    const int each = s.decay_size() / s.value_heads;
    std::vector<double> scales;
    for (int i = 0; i < s.decay_size(); ++i) {
      double step = gates() == LinearGates::kFixed ? 1 : step_of(decay, i);
      if (gates() == LinearGates::kStep) step = std::clamp<double>(step, kMinStep, kMaxStep);
      const double rate = rates()[static_cast<size_t>(i / each)];
      const double share = 1 / (1 + std::exp(-rate * decay_input(decay, i)));
      out.push_back(
          std::exp(gates() == LinearGates::kBounded ? kLowerBound * share : -rate * step));
      scales.push_back(step);
    }
    for (int head = 0; s.scaled && head < s.value_heads; ++head) {
      out.push_back(gates() == LinearGates::kStep
                        ? scales[static_cast<size_t>(head)]
                        : 1 / (1 + std::exp(-double{decay[s.decay_size() + head]})));
    }
    return out;
  }
};

TEST_P(LinearInputsTest, MatchesDoubleOnTokenRows) {
  constexpr int kRows = 3;
  const auto x = rows_of(kRows + 1);
  const auto out = inputs(x, kRows, kRows + 1);
  const auto width = static_cast<size_t>(shape().row_size());
  for (size_t r = 0; r < kRows; ++r) {
    const auto want = wanted(x.data() + r * stride());
    ASSERT_EQ(want.size(), width);
    for (size_t i = 0; i < width; ++i) {
      ASSERT_NEAR(out[r * width + i], want[i], 4e-6 * std::abs(want[i]) + 1e-9) << r << " " << i;
    }
  }
  for (size_t i = kRows * width; i < out.size(); ++i) ASSERT_EQ(out[i], -99) << i;
}

TEST_P(LinearInputsTest, RowsAreBitEqualAloneAndInABatch) {
  constexpr int kRows = 3;
  const auto x = rows_of(kRows);
  const auto together = inputs(x, kRows, kRows);
  const auto width = static_cast<size_t>(shape().row_size());
  for (size_t r = 0; r < kRows; ++r) {
    const auto first = x.begin() + static_cast<ptrdiff_t>(r * stride());
    const auto alone = inputs({first, first + static_cast<ptrdiff_t>(stride())}, 1, 1);
    for (size_t i = 0; i < width; ++i)
      ASSERT_EQ(alone[i], together[r * width + i]) << r << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, LinearInputsTest,
    testing::Values(InputsCase{2, 4, 16, 24, false, LinearGates::kDelta, true, false, true},
                    InputsCase{2, 2, 20, 7, true, LinearGates::kDelta, true, true, true},
                    InputsCase{2, 2, 20, 7, true, LinearGates::kBounded, true, true, true},
                    InputsCase{1, 6, 256, 64, false, LinearGates::kStep, false, false, true},
                    InputsCase{2, 2, 130, 16, false, LinearGates::kStep, false, true, false},
                    InputsCase{3, 3, 32, 32, false, LinearGates::kFixed, false, true, false}));

}  // namespace
}  // namespace foretoken
