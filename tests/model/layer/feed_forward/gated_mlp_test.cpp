#include "model/layer/feed_forward/gated_mlp.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class GatedMlpTest : public test::PartTest {
 protected:
  void SetUp() override {
    PartTest::SetUp();
    if (test_device() == nullptr) return;
    add("mlp.gate_proj.weight", {12, 8});
    add("mlp.up_proj.weight", {12, 8});
    add("mlp.down_proj.weight", {8, 12});
  }

  GatedMlp load(const GatedMlpSpec& spec, const Sharding& sharding = {}) {
    return load_part<GatedMlp>(
        [&](PartLoader& loader, GatedMlp* out) { return out->load(loader, "", spec); }, {},
        sharding);
  }
  void run(const GatedMlp& mlp, const float* x, Sum to) {
    GatedMlp::Scratch scratch;
    scratch.fit(mlp.spec);
    ASSERT_TRUE(scratch.take(scratch_source(2)).ok());
    const LayerRows rows = rows_of(2);
    mlp.expand(rows, x, scratch);
    mlp.output(rows, scratch, to);
    read(to.rows, 1);
  }
  std::vector<double> expected_gated(const std::vector<double>& x) {
    const auto gate = tensors_["mlp.gate_proj.weight"].times(x);
    std::vector<double> inner = tensors_["mlp.up_proj.weight"].times(x);
    for (size_t i = 0; i < inner.size(); ++i) inner[i] *= gate[i] / (1 + std::exp(-gate[i]));
    return tensors_["mlp.down_proj.weight"].times(inner);
  }
};

TEST_F(GatedMlpTest, MatchesDouble) {
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  float* y = allocate<float>(16);
  run(load({.inner = 12}), rows, {y});
  EXPECT_EQ(unused_, "");
  expect_near(y, expected_gated(x));
}

TEST_F(GatedMlpTest, PartsOfRanksAddUp) {
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  float* y = to_device(std::vector<float>(16, 0.0f));
  for (const int32_t rank : {0, 1}) {
    const GatedMlp part = load({.inner = 12}, {rank, 2});
    EXPECT_EQ(part.spec.inner, 6);
    run(part, rows, {y, true});
  }
  expect_near(y, expected_gated(x));
}

TEST_F(GatedMlpTest, FusedTensorsAreTheSame) {
  auto& fused = add("mlp.gate_up_proj.weight", {24, 8}).values;
  const auto& gate = tensors_["mlp.gate_proj.weight"].values;
  const auto& up = tensors_["mlp.up_proj.weight"].values;
  std::copy(gate.begin(), gate.end(), fused.begin());
  std::copy(up.begin(), up.end(), fused.begin() + static_cast<ptrdiff_t>(gate.size()));
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  float* y = to_device(std::vector<float>(16, 0.0f));
  for (const int32_t rank : {0, 1}) {
    run(load({.inner = 12, .fused = true}, {rank, 2}), rows, {y, true});
  }
  expect_near(y, expected_gated(x));
}

}  // namespace
}  // namespace foretoken
