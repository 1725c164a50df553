#include "model/stack/laurel.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class LaurelTest : public test::PartTest {};

TEST_F(LaurelTest, AddsANormedPathToWhatEnters) {
  const auto& left = add("layers.0.laurel.linear_left.weight", {3, 8});
  const auto& right = add("layers.0.laurel.linear_right.weight", {8, 3});
  const auto& norm = add("layers.0.laurel.post_laurel_norm.weight", {8});
  const auto laurel = load_part<Laurel>(
      [](PartLoader& loader, Laurel* out) { return out->load(loader, "layers.0.", 3); });
  EXPECT_EQ(unused_, "");
  EXPECT_TRUE(laurel.exists());
  EXPECT_FALSE(Laurel{}.exists());
  Laurel::Scratch scratch;
  scratch.fit(laurel);
  ASSERT_TRUE(scratch.take(scratch_source(2)).ok());
  std::vector<double> x;
  const float* entering = random_rows(2, 8, &x);
  std::vector<float> path(16);
  for (size_t i = 0; i < x.size(); ++i) path[i] = static_cast<float>(x[i]);
  Laurel::Scratch with_path = scratch;
  with_path.path = to_device(path);
  laurel.add_path(rows_of(2), entering, with_path);

  std::vector<double> want = right.times(left.times(x));
  double square = 0;
  for (const double value : want) square += value * value / 8;
  for (size_t i = 0; i < want.size(); ++i) {
    want[i] = x[i] + want[i] / std::sqrt(square + 1e-5) * norm.values[i];
  }
  expect_near(with_path.path, want);
}

}  // namespace
}  // namespace foretoken
