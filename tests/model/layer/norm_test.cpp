#include "model/layer/norm.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class NormTest : public test::PartTest {};

TEST_F(NormTest, NormsWhatItAdds) {
  std::vector<double> x;
  random_rows(1, 8, &x);
  const std::vector<float> row(x.begin(), x.end()), delta(8, 0.5f), weight(8, 3.0f);
  double squares = 0;
  for (double& value : x) {
    value += 0.5;
    squares += value * value;
  }
  float* residual = to_device(row);
  float* out = allocate<float>(8);
  const LayerRows rows = rows_of(1);
  norm_rows(rows, residual, to_device(delta), {to_device(weight)}, {8, 1e-5f}, {out, DType::kF32});
  expect_near(residual, x);
  std::vector<double> normed = x;
  for (double& value : normed) value *= 3 / std::sqrt(squares / 8 + 1e-5);
  expect_near(out, normed);
  norm_rows(rows, residual, nullptr, {}, {8, 1e-5f}, {out, DType::kF32});
  expect_near(out, x);
}

}  // namespace
}  // namespace foretoken
