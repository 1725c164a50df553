#include "kernels/quant/cpu/quant_kernels.h"

#include <gtest/gtest.h>

#include <string>

#include "support/quant_data.h"

namespace foretoken::cpu {
namespace {

TEST(QuantKernels, EveryFormHasProductsForEveryNumberOfRows) {
  ASSERT_FALSE(quant_kernels().empty());
  EXPECT_EQ(std::string(quant_kernels().back().name), "plain");
  for (const QuantKernels& kernels : quant_kernels()) {
    ASSERT_LE(kernels.max_rows, kMaxQuantRows);
    for (const QuantForm& form : quant_forms()) {
      ASSERT_GE(quant_kind(form), 0);
      for (int rows = 1; rows <= kernels.max_rows; ++rows) {
        EXPECT_NE(kernels.products[quant_kind(form)][rows - 1], nullptr) << kernels.name;
      }
    }
  }
}

TEST(QuantKernels, OtherFormsHaveNone) {
  for (const QuantForm& form :
       {QuantForm{6, GroupScale::kHalf, 32}, QuantForm{8, GroupScale::kHalf, 16},
        QuantForm{8, GroupScale::kHalfAndZero, 32}, QuantForm{4, GroupScale::kSuper, 64},
        QuantForm{4, GroupScale::kHalf, 0}}) {
    EXPECT_EQ(quant_kind(form), -1);
  }
}

TEST(QuantKernels, Sizes) {
  EXPECT_EQ(quant_code_bytes(6, 64), 64 * 16 * 6 / 8);
  EXPECT_EQ(quant_scale_bytes({4, GroupScale::kSuper, 32}, 512), 16 * (2 * 4 + 2 * 16));
}

}  // namespace
}  // namespace foretoken::cpu
