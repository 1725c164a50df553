#include "model/layer/linear.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class LinearTest : public test::PartTest {};

TEST_F(LinearTest, ReplacesRowsOrAddsToThem) {
  const auto& matrix = add("a.weight", {6, 4});
  const auto& bias = add("a.bias", {6});
  const Linear linear = load_part<Linear>(
      [](PartLoader& loader, Linear* out) { return loader.load_linear({{"a", 6}}, 4, true, out); });
  EXPECT_EQ(linear.outputs, 6);
  EXPECT_EQ(linear.inputs, 4);
  std::vector<double> x;
  const float* rows = random_rows(2, 4, &x);
  std::vector<double> want = matrix.times(x);
  for (size_t i = 0; i < want.size(); ++i) want[i] += bias.values[i];
  float* y = to_device(std::vector<float>(12, 100.0f));
  multiply(rows_of(2), rows, linear, {y}, DType::kF32);
  expect_near(y, want);
  multiply(rows_of(2), rows, linear, {y, true}, DType::kF32);
  for (double& value : want) value *= 2;
  expect_near(y, want);
}

}  // namespace
}  // namespace foretoken
