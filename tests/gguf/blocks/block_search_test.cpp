#include "gguf/blocks/block_search.h"

#include <gtest/gtest.h>

#include <array>

#include "base/quantized_rows.h"

namespace foretoken {
namespace {

constexpr std::array<float, 32> kOnes = [] {
  std::array<float, 32> ones{};
  ones.fill(1);
  return ones;
}();

// Values that lie on the steps of a scale give it back.
TEST(BlockSearch, FindsTheScaleThatWasThere) {
  std::array<float, 32> values;
  for (size_t i = 0; i < 32; ++i) values[i] = 0.25F * static_cast<float>(i % 16) - 1.5F;
  const AffineScale affine = best_affine_scale(values, kOnes, {15, false});
  EXPECT_NEAR(affine.scale, 0.25F, 1e-5F);
  EXPECT_NEAR(affine.min, 1.5F, 1e-5F);
  for (float& value : values) value += 4;
  EXPECT_NEAR(best_affine_scale(values, kOnes, {15, true}).min, -2.5F, 1e-4F);
  EXPECT_GE(best_affine_scale(values, kOnes, {15, false}).min, 0);
  for (size_t i = 0; i < 32; ++i) values[i] = 0.5F * (static_cast<float>(i % 16) - 8);
  EXPECT_NEAR(best_code_scale(values, kOnes, -8, 7), 0.5F, 1e-5F);
}

TEST(BlockSearch, Tables) {
  const int8_t* table = code_values(CodeTable::kIq4);
  EXPECT_EQ(nearest_in_table(-1000, table), 0);
  EXPECT_EQ(nearest_in_table(1000, table), 15);
  EXPECT_EQ(nearest_in_table(2, table), 8);
  EXPECT_EQ(nearest_in_table(-5, table), 7);
  std::array<float, 32> values;
  for (size_t i = 0; i < 32; ++i) values[i] = 0.125F * static_cast<float>(table[i % 16]);
  EXPECT_NEAR(best_table_scale(values, kOnes, table), 0.125F, 1e-5F);
}

TEST(BlockSearch, ImportantValuesWeighMore) {
  std::array<float, 4> values = {1, 1, -1, 0};
  const std::array<float, 4> importance = {1, 9, 1, 0};
  const auto weights = error_weights(std::span<const float, 4>(values), importance.data());
  EXPECT_NEAR(weights[1] / weights[0], 9, 1e-4F);
  EXPECT_GT(weights[3], 0);
}

}  // namespace
}  // namespace foretoken
