#include "model/layer/recurrent/short_conv.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int32_t kHidden = 8, kTaps = 3, kConvRows = 5;

class ShortConvTest : public test::PartTest {
 protected:
  // The rows of one sequence from position 0 on, in steps of so many.
  std::vector<float> run(const ShortConvSpec& spec, const float* x, int32_t each,
                         const Sharding& sharding = {}) {
    const ShortConv mixer = load_part<ShortConv>(
        [&](PartLoader& loader, ShortConv* out) { return out->load(loader, "layers.0.", spec); },
        {}, sharding);
    EXPECT_EQ(unused_, "");
    ShortConv::Scratch scratch;
    scratch.fit(mixer.spec);
    EXPECT_TRUE(scratch.take(scratch_source(kConvRows)).ok());
    LayerKv kv{};
    kv.state.history_rows = kTaps;
    kv.state.history = allocate<float>(size_t{2} * kTaps * kHidden);
    float* out = allocate<float>(size_t{kConvRows} * kHidden);
    for (int32_t first = 0; first < kConvRows; first += each) {
      const int32_t count = std::min(each, kConvRows - first);
      std::vector<int32_t> positions;
      for (int32_t i = 0; i < count; ++i) positions.push_back(first + i);
      const LayerRows rows = rows_of(count, positions);
      mixer.project(rows, x + first * kHidden, scratch);
      mixer.attend(rows, kv, scratch);
      mixer.output(rows, scratch, {out + first * kHidden});
    }
    return read(out, size_t{kConvRows} * kHidden);
  }
};

TEST_F(ShortConvTest, GatesAroundAConvolutionWhateverTheSteps) {
  const auto& in = add("layers.0.conv.in_proj.weight", {3 * kHidden, kHidden});
  const auto& in_bias = add("layers.0.conv.in_proj.bias", {3 * kHidden});
  const auto& conv = add("layers.0.conv.conv.weight", {kHidden, 1, kTaps});
  const auto& conv_bias = add("layers.0.conv.conv.bias", {kHidden});
  const auto& out = add("layers.0.conv.out_proj.weight", {kHidden, kHidden});
  const auto& out_bias = add("layers.0.conv.out_proj.bias", {kHidden});
  const ShortConvSpec spec{.inputs = kHidden, .channels = kHidden, .width = kTaps, .bias = true};
  std::vector<float> x(size_t{kConvRows} * kHidden);
  fill_random("x", std::ssize(x), 0.8f, DType::kF32, x.data());
  std::vector<double> want, before[kTaps - 1];
  for (auto& row : before) row.assign(kHidden, 0);
  for (int32_t row = 0; row < kConvRows; ++row) {
    const auto at = x.begin() + row * kHidden;
    std::vector<double> gates = in.times({at, at + kHidden});
    for (size_t i = 0; i < gates.size(); ++i) gates[i] += in_bias.values[i];
    std::vector<double> mixed(kHidden), now(kHidden);
    for (size_t c = 0; c < kHidden; ++c) {
      now[c] = gates[c] * gates[2 * kHidden + c];
      const float* w = conv.values.data() + c * kTaps;
      mixed[c] = conv_bias.values[c] + w[0] * before[0][c] + w[1] * before[1][c] + w[2] * now[c];
      mixed[c] *= gates[kHidden + c];
    }
    before[0] = before[1];
    before[1] = now;
    const std::vector<double> one = out.times(mixed);
    for (size_t c = 0; c < kHidden; ++c) want.push_back(one[c] + out_bias.values[c]);
  }
  const float* rows = to_device(x);
  const std::vector<float> whole = run(spec, rows, kConvRows);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(whole[i], want[i], 1e-5) << i;
  EXPECT_EQ(run(spec, rows, 1), whole);
  EXPECT_EQ(run(spec, rows, 2), whole);
  const std::vector<float> first = run(spec, rows, 2, {0, 2}), second = run(spec, rows, 2, {1, 2});
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(first[i] + second[i], want[i], 1e-5) << i;
}

}  // namespace
}  // namespace foretoken
