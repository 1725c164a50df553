#include "model/layer/recurrent/selective_mixer.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int32_t kScanHidden = 8, kScanned = 12, kStates = 4, kRank = 2, kScanTaps = 3,
                  kScanRows = 5;

using ScanRow = std::vector<double>;

// Root mean squares of x[begin, end).
void norm_part(ScanRow* x, size_t begin, size_t end, const float* weights, double eps) {
  double squares = 0;
  for (size_t i = begin; i < end; ++i) squares += (*x)[i] * (*x)[i];
  const double factor = 1 / std::sqrt(squares / static_cast<double>(end - begin) + eps);
  for (size_t i = begin; i < end; ++i) (*x)[i] *= factor * weights[i - begin];
}

double silu_of(double x) { return x / (1 + std::exp(-x)); }

class SelectiveMixerTest : public test::PartTest {
 protected:
  // The rows of one sequence from position 0 on, in steps of so many.
  std::vector<float> run(const SelectiveSpec& spec, const float* x, int32_t each) {
    const SelectiveMixer mixer = load_part<SelectiveMixer>(
        [&](PartLoader& loader, SelectiveMixer* out) { return out->load(loader, "0.", spec); });
    EXPECT_EQ(unused_, "");
    SelectiveMixer::Scratch scratch;
    scratch.fit(mixer.spec);
    EXPECT_TRUE(scratch.take(scratch_source(kScanRows)).ok());
    LayerKv kv{};
    kv.state.history_rows = kScanTaps;
    kv.state.history = allocate<float>(size_t{2} * kScanTaps * kScanned);
    kv.state.pending_rows = 1;
    kv.state.states = allocate<float>(size_t{2} * kScanned * kStates);
    kv.state.committed = to_device(std::vector<int32_t>(2, 0));
    kv.state.pending = allocate<float>(size_t{2} * (kStates + 2 * kScanned));
    float* out = allocate<float>(size_t{kScanRows} * kScanHidden);
    for (int32_t first = 0; first < kScanRows; first += each) {
      const int32_t count = std::min(each, kScanRows - first);
      std::vector<int32_t> positions;
      for (int32_t i = 0; i < count; ++i) positions.push_back(first + i);
      const LayerRows rows = rows_of(count, positions);
      mixer.project(rows, x + first * kScanHidden, scratch);
      mixer.attend(rows, kv, scratch);
      mixer.output(rows, scratch, {out + first * kScanHidden});
    }
    return read(out, size_t{kScanRows} * kScanHidden);
  }
};

TEST_F(SelectiveMixerTest, ScansWhatAConvolutionLeavesWhateverTheSteps) {
  const auto& in = add("0.mixer.in_proj.weight", {2 * kScanned, kScanHidden});
  const auto& conv = add("0.mixer.conv1d.weight", {kScanned, 1, kScanTaps});
  const auto& conv_bias = add("0.mixer.conv1d.bias", {kScanned});
  const auto& maps = add("0.mixer.x_proj.weight", {kRank + 2 * kStates, kScanned});
  const auto& steps = add("0.mixer.dt_proj.weight", {kScanned, kRank});
  const auto& steps_bias = add("0.mixer.dt_proj.bias", {kScanned});
  const auto& rates = add("0.mixer.A_log", {kScanned, kStates});
  const auto& skip = add("0.mixer.D", {kScanned});
  const auto& low_norm = add("0.mixer.dt_layernorm.weight", {kRank});
  const auto& key_norm = add("0.mixer.b_layernorm.weight", {kStates});
  const auto& query_norm = add("0.mixer.c_layernorm.weight", {kStates});
  const auto& out = add("0.mixer.out_proj.weight", {kScanHidden, kScanned});
  const SelectiveSpec spec{.inputs = kScanHidden,
                           .channels = kScanned,
                           .d_state = kStates,
                           .step_rank = kRank,
                           .conv_width = kScanTaps,
                           .conv_bias = true,
                           .norms = SelectiveNorms::kWeighted};
  std::vector<float> x(size_t{kScanRows} * kScanHidden);
  fill_random("x", std::ssize(x), 0.8f, DType::kF32, x.data());
  ScanRow want, h(kScanned * kStates), before[kScanTaps - 1];
  for (auto& row : before) row.assign(kScanned, 0);
  for (int32_t row = 0; row < kScanRows; ++row) {
    const auto at = x.begin() + row * kScanHidden;
    const ScanRow first = in.times({at, at + kScanHidden});
    ScanRow mixed(kScanned), left(kScanned);
    for (size_t c = 0; c < kScanned; ++c) {
      const float* w = conv.values.data() + c * kScanTaps;
      mixed[c] = silu_of(conv_bias.values[c] + w[0] * before[0][c] + w[1] * before[1][c] +
                         w[2] * first[c]);
    }
    before[0] = before[1];
    before[1].assign(first.begin(), first.begin() + kScanned);
    ScanRow made = maps.times(mixed);
    norm_part(&made, 0, kRank, low_norm.values.data(), 1e-5);
    norm_part(&made, kRank, kRank + kStates, key_norm.values.data(), 1e-5);
    norm_part(&made, kRank + kStates, made.size(), query_norm.values.data(), 1e-5);
    const ScanRow step = steps.times({made.begin(), made.begin() + kRank});
    for (size_t c = 0; c < kScanned; ++c) {
      const double size = std::log1p(std::exp(step[c] + steps_bias.values[c]));
      left[c] = skip.values[c] * mixed[c];
      for (size_t n = 0; n < kStates; ++n) {
        double& number = h[c * kStates + n];
        number *= std::exp(-std::exp(double{rates.values[c * kStates + n]}) * size);
        number += size * mixed[c] * made[kRank + n];
        left[c] += number * made[kRank + kStates + n];
      }
      left[c] *= silu_of(first[kScanned + c]);
    }
    const ScanRow one = out.times(left);
    want.insert(want.end(), one.begin(), one.end());
  }
  const float* rows = to_device(x);
  const std::vector<float> whole = run(spec, rows, kScanRows);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(whole[i], want[i], 1e-5) << i;
  EXPECT_EQ(run(spec, rows, 1), whole);
  EXPECT_EQ(run(spec, rows, 2), whole);
}

}  // namespace
}  // namespace foretoken
