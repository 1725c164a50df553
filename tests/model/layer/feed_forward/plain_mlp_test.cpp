#include "model/layer/feed_forward/plain_mlp.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class PlainMlpTest : public test::PartTest {
 protected:
  void run(const PlainMlp& mlp, const float* x, Sum to) {
    PlainMlp::Scratch scratch;
    scratch.fit(mlp.spec);
    ASSERT_TRUE(scratch.take(scratch_source(2)).ok());
    const LayerRows rows = rows_of(2);
    mlp.expand(rows, x, scratch);
    mlp.output(rows, scratch, to);
    read(to.rows, 1);
  }
  PlainMlp load(const PlainMlpSpec& spec, const Sharding& sharding = {}) {
    return load_part<PlainMlp>(
        [&](PartLoader& loader, PlainMlp* out) { return out->load(loader, "layers.0.", spec); }, {},
        sharding);
  }
};

TEST_F(PlainMlpTest, PartsOfRanksAddUp) {
  const auto& up = add("layers.0.mlp.c_fc.weight", {12, 8});
  const auto& up_bias = add("layers.0.mlp.c_fc.bias", {12});
  const auto& down = add("layers.0.mlp.c_proj.weight", {8, 12});
  const auto& down_bias = add("layers.0.mlp.c_proj.bias", {8});
  const PlainMlpSpec spec{.inner = 12,
                          .activation = Activation::kReluSquared,
                          .bias = true,
                          .up = "c_fc",
                          .down = "c_proj"};
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  std::vector<double> inner = up.times(x);
  for (size_t i = 0; i < inner.size(); ++i) {
    const double positive = std::max(inner[i] + up_bias.values[i], 0.0);
    inner[i] = positive * positive;
  }
  std::vector<double> want = down.times(inner);
  for (size_t i = 0; i < want.size(); ++i) want[i] += down_bias.values[i];
  for (const int32_t ranks : {1, 2}) {
    float* y = to_device(std::vector<float>(16, 0.0f));
    for (int32_t rank = 0; rank < ranks; ++rank) {
      run(load(spec, {rank, ranks}), rows, {y, true});
      EXPECT_EQ(unused_, "");
    }
    expect_near(y, want);
  }
}

TEST_F(PlainMlpTest, XieluHasParametersOfTheLayer) {
  const auto& up = add("layers.0.mlp.up_proj.weight", {12, 8});
  const auto& down = add("layers.0.mlp.down_proj.weight", {8, 12});
  add("layers.0.mlp.act_fn.alpha_p", {1}).values = {0.3f};
  add("layers.0.mlp.act_fn.alpha_n", {1}).values = {-0.2f};
  add("layers.0.mlp.act_fn.beta", {1}).values = {0.5f};
  add("layers.0.mlp.act_fn.eps", {}).values = {-1e-6f};
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  std::vector<double> inner = up.times(x);
  const double positive = std::log1p(std::exp(0.3)), negative = 0.5 + std::log1p(std::exp(-0.2));
  for (double& v : inner) {
    v = v > 0 ? positive * v * v + 0.5 * v
              : (std::expm1(std::min(v, -1e-6)) - v) * negative + 0.5 * v;
  }
  float* y = allocate<float>(16);
  run(load({.inner = 12, .activation = Activation::kXielu}), rows, {y});
  EXPECT_EQ(unused_, "");
  expect_near(y, down.times(inner));
}

}  // namespace
}  // namespace foretoken
