#include "kernels/cpu/packed_weight.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

TEST(PackedWeight, SlicesCoverTheColumnsInOrder) {
  for (const auto& [n, k] : {std::pair{1, 16}, std::pair{64, 192}, std::pair{576, 192},
                             std::pair{1000, 512}, std::pair{5000, 64}}) {
    const auto rows = random_floats(static_cast<size_t>(n) * static_cast<size_t>(k), 1);
    const WeightPart part{rows.data(), n};
    const PackedWeight weight({&part, 1}, k, DType::kF32);
    int next = 0;
    for (int i = 0; i < weight.num_slices(); ++i) {
      EXPECT_EQ(weight.first_col(i), next);
      EXPECT_GT(weight.cols(i), 0);
      EXPECT_LE(weight.cols(i), kMaxSliceCols);
      next += weight.cols(i);
    }
    EXPECT_EQ(next, n);
  }
}

// Stacked parts equal the same rows in one part, and rows that cannot be read do not matter.
TEST(PackedWeight, StacksPartsAndSplitsBucketsThatReachTooFar) {
  constexpr int kN = 160, kK = 128, kRows = 13;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const TypedData w = typed_data(random_floats(kN * kK, 2), dtype);
    const size_t cut = size_t{50} * kK * dtype_size(dtype);
    const WeightPart whole{w.data(), kN};
    const WeightPart parts[2] = {{w.bytes.data(), 50}, {w.bytes.data() + cut, kN - 50}};
    const PackedWeight one({&whole, 1}, kK, dtype);
    const PackedWeight two(parts, kK, dtype);
    ASSERT_EQ(one.num_slices(), two.num_slices());
    const TypedData x = typed_data(random_floats(16 * kK, 3), dtype);
    // Exactly the rows that may be read, so that AddressSanitizer sees a read beyond them.
    const std::vector<uint8_t> short_x(
        x.bytes.begin(), x.bytes.begin() + kRows * kK * static_cast<int>(dtype_size(dtype)));
    std::vector<float> a(kMaxTileRows * kMaxSliceCols), b(a.size());
    for (int i = 0; i < one.num_slices(); ++i) {
      one.multiply(i, x.data(), a.data(), kRows, 16);
      two.multiply(i, short_x.data(), b.data(), kRows, kRows);
      const size_t bytes = kRows * static_cast<size_t>(one.cols(i)) * sizeof(float);
      EXPECT_EQ(std::memcmp(a.data(), b.data(), bytes), 0);
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
