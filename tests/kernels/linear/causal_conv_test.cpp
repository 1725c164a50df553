#include "kernels/linear/causal_conv.h"

#include <cmath>
#include <tuple>

#include "kernels/linear/stepped_runs.h"

namespace foretoken {
namespace {

// Channels, width, whether there are gates, whether there are a bias and an activation, type.
using ConvCase = std::tuple<int, int, bool, bool, DType>;

class CausalConvTest : public SteppedRowsTest, public testing::WithParamInterface<ConvCase> {
 protected:
  static constexpr int kSlots = 3, kMaxDrafts = 4, kSize = 33;

  int channels() const { return std::get<0>(GetParam()); }
  int width() const { return std::get<1>(GetParam()); }
  bool gates() const { return std::get<2>(GetParam()); }
  bool activates() const { return std::get<3>(GetParam()); }
  DType dtype() const { return std::get<4>(GetParam()); }
  // Rows hold [what comes before them | x | x_gate | out_gate].
  int lead() const { return channels() % 4 == 0 ? 4 : 3; }
  int stride() const { return lead() + 3 * channels(); }
  int history_rows() const { return width() + kMaxDrafts; }

  std::vector<float> sequence(uint64_t seed) const {
    return random_floats(static_cast<size_t>(kSize * stride()), seed);
  }
  std::vector<float> weights() const {
    return random_floats(static_cast<size_t>(channels() * width()), 50);
  }
  std::vector<float> bias() const { return random_floats(static_cast<size_t>(channels()), 51); }
  float* history() {
    return to_device(
        std::vector<float>(static_cast<size_t>((kSlots + 1) * history_rows() * channels()), NAN));
  }
  std::vector<float> launch(const SteppedLaunch& runs, float* kept,
                            const std::vector<std::vector<float>>& data) {
    const Rows rows = rows_of(runs, kSlots);
    const float* x = to_device(packed(runs, static_cast<size_t>(stride()), data)) + lead();
    const size_t size = static_cast<size_t>(rows.max_rows) * static_cast<size_t>(channels());
    uint8_t* out = marked(size * dtype_size(dtype()));
    causal_conv(queue(), {rows.counts, x, gates() ? x + channels() : nullptr,
                          gates() ? x + 2 * channels() : nullptr, to_device(weights()),
                          activates() ? to_device(bias()) : nullptr, rows.positions, rows.row_slot,
                          kept, out, stride(), rows.max_rows, channels(), width(), history_rows(),
                          activates() ? 1 : 0, dtype()});
    const size_t live = static_cast<size_t>(rows.max_rows - 1) * static_cast<size_t>(channels());
    expect_marked(read(out, size * dtype_size(dtype())), live * dtype_size(dtype()));
    return read_typed(out, live, dtype());
  }
  std::vector<float> at_once(const std::vector<float>& data) {
    return launch({{1, 0, kSize, kSize + 1, kSize}}, history(), {{}, data});
  }
  double input(const std::vector<float>& data, int position, int c) const {
    if (position < 0) return 0;
    const float* row = data.data() + position * stride() + lead();
    return gates() ? double{row[c]} * row[channels() + c] : double{row[c]};
  }
  // `w`, `b`: of weights() and bias().
  double wanted(const std::vector<float>& data, const std::vector<float>& w,
                const std::vector<float>& b, int position, int c) const {
    double sum = activates() ? b[static_cast<size_t>(c)] : 0;
    for (int j = 0; j < width(); ++j) {
      sum += w[static_cast<size_t>(c * width() + j)] * input(data, position - width() + 1 + j, c);
    }
    if (activates()) sum /= 1 + std::exp(-sum);
    return gates()
               ? sum * data[static_cast<size_t>(position * stride() + lead() + 2 * channels() + c)]
               : sum;
  }
  void expect_same(StepChoice choice) {
    const std::vector<std::vector<float>> data = {sequence(1), sequence(2), sequence(3)};
    std::vector<std::vector<float>> want;
    for (const auto& each : data) want.push_back(at_once(each));
    float* kept = history();
    for (uint64_t seed = 0; seed < 3; ++seed) {
      std::vector<std::vector<SteppedLaunch>> sequences;
      for (int slot = 0; slot < kSlots; ++slot) {
        sequences.push_back(stepped_runs(slot, kSize, choice, 10 * seed + uint64_t(slot)));
      }
      for (const SteppedLaunch& runs : together(sequences)) {
        expect_rows(runs, launch(runs, kept, data), want);
      }
    }
  }
  void expect_rows(const SteppedLaunch& runs, const std::vector<float>& out,
                   const std::vector<std::vector<float>>& want) const {
    const auto size = static_cast<size_t>(channels());
    size_t row = 0;
    for (const SteppedRun& run : runs) {
      for (int i = 0; i < run.count; ++i, ++row) {
        if (i >= run.right) continue;
        const float* expected = want[size_t(run.slot)].data() + size_t(run.begin + i) * size;
        for (size_t c = 0; c < size; ++c) {
          ASSERT_EQ(out[row * size + c], expected[c])
              << "slot " << run.slot << " position " << run.begin + i << " channel " << c;
        }
      }
    }
  }
};

TEST_P(CausalConvTest, MatchesDouble) {
  const auto data = sequence(4);
  const auto out = at_once(data);
  const auto w = weights(), b = bias();
  for (int p = 0; p < kSize; ++p) {
    for (int c = 0; c < channels(); ++c) {
      const double want = wanted(data, w, b, p, c);
      ASSERT_NEAR(out[static_cast<size_t>(p * channels() + c)], want,
                  storage_error(dtype()) * (1 + 3 * std::abs(want)))
          << p << " " << c;
    }
  }
}

TEST_P(CausalConvTest, ChunksHaveTheBitsOfOneRun) { expect_same({9, 0, false}); }
TEST_P(CausalConvTest, RejectedDraftsLeaveNothing) { expect_same({9, kMaxDrafts, false}); }
TEST_P(CausalConvTest, DraftPassesLeaveNothing) { expect_same({9, kMaxDrafts, true}); }

INSTANTIATE_TEST_SUITE_P(Forms, CausalConvTest,
                         testing::Values(ConvCase{150, 4, false, true, DType::kF32},
                                         ConvCase{20, 3, true, false, DType::kBF16},
                                         ConvCase{8, 2, false, false, DType::kF32},
                                         ConvCase{300, 8, true, true, DType::kF32}));

}  // namespace
}  // namespace foretoken
