#include "model/layer/part_loader.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class PartLoaderTest : public test::PartTest {};

TEST_F(PartLoaderTest, NormsAreReadyToMultiply) {
  const auto& weight = add("norm.weight", {8});
  const Norm norm = load_part<Norm>(
      [](PartLoader& loader, Norm* out) { return loader.load_norm("norm", 8, out); },
      {.offset = 1});
  std::vector<double> want(weight.values.begin(), weight.values.end());
  for (double& value : want) value += 1;
  expect_near(norm.weight, want);
}

// What two ranks make of their columns adds up, the bias once.
TEST_F(PartLoaderTest, SummedMatricesAreCutByColumns) {
  const auto& matrix = add("o.weight", {8, 6});
  const auto& bias = add("o.bias", {8});
  std::vector<double> x;
  random_rows(1, 6, &x);
  std::vector<double> want = matrix.times(x);
  for (size_t i = 0; i < want.size(); ++i) want[i] += bias.values[i];
  float* y = to_device(std::vector<float>(8, 0.0f));
  for (const int32_t rank : {0, 1}) {
    const Linear part = load_part<Linear>(
        [](PartLoader& loader, Linear* out) { return loader.load_summed("o", 6, true, out); }, {},
        {rank, 2});
    EXPECT_EQ(unused_, "");
    ASSERT_EQ(part.inputs, 3);
    const std::vector<float> own(x.begin() + rank * 3, x.begin() + rank * 3 + 3);
    multiply(rows_of(1), to_device(own), part, {y, true}, DType::kF32);
    read(y, 8);  // the part stays until it is used
  }
  expect_near(y, want);
}

TEST_F(PartLoaderTest, AMissingTensorIsNamed) {
  add("norm.weight", {8});
  load_part<Linear>([](PartLoader& loader, Linear* out) {
    const Status status = loader.load_summed("o", 6, false, out);
    EXPECT_NE(status.message().find("'o.weight'"), std::string::npos) << status.message();
    return Status();
  });
}

}  // namespace
}  // namespace foretoken
