#include "kernels/op_view.h"

#include <gtest/gtest.h>

#include "kernels/gemm/gemm.h"
#include "kernels/sampling/sample.h"

namespace foretoken {
namespace {

TEST(OpView, LiveRowsAreCountedFromTheOffsetOn) {
  const LiveRows live{.counts = {9, 7, 1, 0}};
  EXPECT_EQ(live_count(live, RowKind::kToken, 0, 20), 9);
  EXPECT_EQ(live_count(live, RowKind::kLogits, 2, 20), 5);
  EXPECT_EQ(live_count(live, RowKind::kLogits, 2, 3), 3) << "at most those of a tile";
  EXPECT_EQ(live_count(live, RowKind::kLogits, 8, 3), 0);
}

TEST(OpView, PackedWeightsHaveTheBytesOfTheirTypeUnlessOthersAreTold) {
  EXPECT_EQ(packed_bytes(100, DType::kBF16, {}), 200);
  EXPECT_EQ(packed_bytes(100, DType::kBF16, {.weight_bytes = 55}), 55);
}

TEST(OpView, OnlyProductsHaveWeights) {
  GemmArgs args{};
  args.n = 3;
  args.k = 4;
  const OpView product = gemm_view();
  ASSERT_NE(product.weights, nullptr);
  EXPECT_EQ(product.weights(&args).elements, 12);
  EXPECT_TRUE(product.repeats);
  EXPECT_EQ(sample_view().weights, nullptr);
}

}  // namespace
}  // namespace foretoken
