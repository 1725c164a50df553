#include "model/layer/row_gate.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class RowGateTest : public test::PartTest {};

TEST_F(RowGateTest, WeighsEachElementByWhatTheRowSays) {
  const auto& down = add("layers.0.norm.W_down.weight", {3, 8});
  const auto& up = add("layers.0.norm.W_up.weight", {8, 3});
  const auto gate = load_part<RowGate>([](PartLoader& loader, RowGate* out) {
    return out->load(loader, "layers.0.", {.rank = 3, .base = "norm."});
  });
  EXPECT_EQ(unused_, "");
  EXPECT_TRUE(gate.exists());
  RowGate::Scratch scratch;
  scratch.fit(gate);
  ASSERT_TRUE(scratch.take(scratch_source(2)).ok());
  std::vector<double> x;
  const float* entering = random_rows(2, 8, &x);
  float* rows = to_device(read(entering, 16));
  gate.apply(rows_of(2), rows, scratch, DType::kF32);

  std::vector<double> low = down.times(x);
  for (double& value : low) value /= 1 + std::exp(-value);
  const std::vector<double> gates = up.times(low);
  for (size_t i = 0; i < x.size(); ++i) x[i] /= 1 + std::exp(-gates[i]);
  expect_near(rows, x);
}

TEST_F(RowGateTest, LeavesRowsAsTheyAreWithoutARank) {
  const auto gate = load_part<RowGate>(
      [](PartLoader& loader, RowGate* out) { return out->load(loader, "layers.0.", {}); });
  EXPECT_FALSE(gate.exists());
  RowGate::Scratch scratch;
  scratch.fit(gate);
  ASSERT_TRUE(scratch.take(scratch_source(2)).ok());
  std::vector<double> x;
  float* rows = to_device(read(random_rows(1, 8, &x), 8));
  gate.apply(rows_of(1), rows, scratch, DType::kF32);
  expect_near(rows, x, 0);
}

}  // namespace
}  // namespace foretoken
