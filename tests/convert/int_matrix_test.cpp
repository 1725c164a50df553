#include "convert/int_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/bfloat16.h"
#include "base/half.h"

namespace foretoken {
namespace {

constexpr int64_t kIntRows = 6, kIntCols = 64, kIntGroup = 32;

TensorView int_source_view(const std::vector<float>& values) {
  TensorView view;
  view.name = "m";
  view.dtype_name = "F32";
  view.shape = {kIntRows, kIntCols};
  view.data = reinterpret_cast<const std::byte*>(values.data());
  view.num_bytes = view.num_elements() * 4;
  return view;
}

std::vector<float> some_weights() {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.01F, 0.05F);
  std::vector<float> weights(kIntRows * kIntCols);
  for (float& weight : weights) weight = normal(random);
  return weights;
}

// Every weight is half a step from what it was at most; scales are the ends over the codes.
TEST(IntMatrix, IsHalfAStepAway) {
  const std::vector<float> weights = some_weights();
  const TensorView view = int_source_view(weights);
  for (const int bits : {4, 8}) {
    for (const bool has_zeros : {false, true}) {
      for (const bool bf16 : {false, true}) {
        const auto made = round_to_ints(TensorRows(view), {bits, kIntGroup, has_zeros, bf16});
        ASSERT_TRUE(made.ok()) << made.status().message();
        const IntMatrix& m = made.value();
        EXPECT_EQ(m.groups, kIntCols / kIntGroup);
        for (int64_t i = 0; i < kIntRows * kIntCols; ++i) {
          const int64_t row = i / kIntCols, col = i % kIntCols, group = col / kIntGroup;
          const float scale =
              bf16 ? bf16_to_float(m.scale(row, group)) : half_to_float(m.scale(row, group));
          const auto zero = static_cast<float>(m.zero(row, group));
          const float back = scale * (static_cast<float>(m.code(row, col)) - zero);
          // Scales are rounded, and codes reach half a step short of an end.
          ASSERT_LE(std::fabs(back - weights[static_cast<size_t>(i)]),
                    scale * (bf16 && bits == 8 ? 1.1F : 0.65F))
              << bits << has_zeros << bf16 << " " << i;
          if (!has_zeros) {
            ASSERT_EQ(m.zero(row, group), 1u << (bits - 1));
          }
        }
      }
    }
  }
}

// 0 is always a number of a group, whichever sign its numbers have.
TEST(IntMatrix, GroupsOfOneSignAndOfZerosComeBack) {
  const IntForm form{4, 4, true};
  uint8_t codes[4];
  const float positive[4] = {1, 2, 3, 15};
  const IntGroup above = round_to_ints(positive, form, codes);
  EXPECT_EQ(above.scale, 1);
  EXPECT_EQ(above.zero, 0);
  EXPECT_EQ(codes[3], 15);
  const float negative[4] = {-1, -2, -3, -15};
  const IntGroup below = round_to_ints(negative, form, codes);
  EXPECT_EQ(below.zero, 15);
  EXPECT_EQ(codes[0], 14);
  EXPECT_EQ(codes[3], 0);
  const float nothing[4] = {};
  for (const bool has_zeros : {false, true}) {
    const IntGroup none = round_to_ints(nothing, {4, 4, has_zeros}, codes);
    EXPECT_EQ(none.scale, 0);
    for (const uint8_t code : codes) EXPECT_EQ(code, none.zero);
  }
}

TEST(IntMatrix, WhatIsNoNumberIsNamed) {
  std::vector<float> weights = some_weights();
  weights[70] = NAN;
  const TensorView view = int_source_view(weights);
  EXPECT_NE(round_to_ints(TensorRows(view), {4, kIntGroup}).status().message().find("'m'"),
            std::string::npos);
  weights[70] = 1e6F;
  EXPECT_FALSE(round_to_ints(TensorRows(view), {4, kIntGroup}).ok());
  EXPECT_TRUE(round_to_ints(TensorRows(view), {4, kIntGroup, false, true}).ok());
}

}  // namespace
}  // namespace foretoken
