#include "kernels/rows/fill_random.h"

#include "base/bfloat16.h"
#include "kernels/random_weight.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

class FillRandomTest : public RowOpTest, public testing::WithParamInterface<DType> {};

// The same bits on every device, whatever pieces a tensor is made in.
TEST_P(FillRandomTest, StoresTheElementsOfTheTensorAndNoMore) {
  constexpr int64_t kCount = 40001, kFirst = 17;
  const uint64_t seed = random_weight_seed("model.layers.0.mlp.gate_proj.weight");
  const float scale = random_weight_scale(0.02f);
  const size_t bytes = kCount * dtype_size(GetParam());
  uint8_t* to = marked(bytes + 64);
  fill_random(queue(), {to, kFirst, kCount, seed, scale, GetParam()});
  const auto got = read(to, bytes + 64);
  expect_marked(got, bytes);
  for (int64_t i = 0; i < kCount; ++i) {
    const float value = random_weight(seed, static_cast<uint64_t>(kFirst + i), scale);
    if (GetParam() == DType::kF32) {
      ASSERT_EQ(reinterpret_cast<const float*>(got.data())[i], value) << i;
    } else {
      ASSERT_EQ(reinterpret_cast<const uint16_t*>(got.data())[i], bf16_from_float(value)) << i;
    }
  }
}

TEST(FillRandom, SeedsDifferByName) {
  EXPECT_EQ(random_weight_seed("a"), random_weight_seed("a"));
  EXPECT_NE(random_weight_seed("a"), random_weight_seed("b"));
}

INSTANTIATE_TEST_SUITE_P(Types, FillRandomTest, testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace foretoken
