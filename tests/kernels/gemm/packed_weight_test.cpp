#include "kernels/gemm/cpu/packed_weight.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "kernels/cpu/op_table.h"
#include "kernels/gemm/pack_rows.h"
#include "support/quant_data.h"
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
  constexpr int kN = 160, kDepth = 128, kRows = 13;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const TypedData w = typed_data(random_floats(kN * kDepth, 2), dtype);
    const size_t cut = size_t{50} * kDepth * dtype_size(dtype);
    const WeightPart whole{w.data(), kN};
    const WeightPart parts[2] = {{w.bytes.data(), 50}, {w.bytes.data() + cut, kN - 50}};
    const PackedWeight one({&whole, 1}, kDepth, dtype);
    const PackedWeight two(parts, kDepth, dtype);
    ASSERT_EQ(one.num_slices(), two.num_slices());
    const TypedData x = typed_data(random_floats(16 * kDepth, 3), dtype);
    // Exactly the rows that may be read, so that AddressSanitizer sees a read beyond them.
    const std::vector<uint8_t> short_x(
        x.bytes.begin(), x.bytes.begin() + kRows * kDepth * static_cast<int>(dtype_size(dtype)));
    std::vector<float> a(kMaxTileRows * kMaxSliceCols), b(a.size());
    for (int i = 0; i < one.num_slices(); ++i) {
      one.multiply(i, x.data(), a.data(), kRows, 16);
      two.multiply(i, short_x.data(), b.data(), kRows, kRows);
      const size_t bytes = kRows * static_cast<size_t>(one.cols(i)) * sizeof(float);
      EXPECT_EQ(std::memcmp(a.data(), b.data(), bytes), 0);
    }
  }
}

// Parts in forms of their own, stacked to [90 + 70 + 96, 256].
const std::vector<QuantizedPart> kMixedParts = {{{4, GroupScale::kSuper, 32}, 90},
                                                {{6, GroupScale::kSuperSigned, 16}, 70},
                                                {{8, GroupScale::kHalf, 32}, 96}};
constexpr int kMixedRows = 256;
constexpr int kMixedCols = 256;

std::unique_ptr<PackedWeight> pack_mixed(DType dtype, WeightOrder order) {
  std::vector<std::byte> matrix[kMixedRows];  // by row
  int next = 0;
  for (const QuantizedPart& part : kMixedParts) {
    const auto rows = random_quantized_rows(part.form, part.num_rows, kMixedCols, 9);
    const int64_t bytes = quantized_row_bytes(part.form, kMixedCols);
    for (int64_t i = 0; i < part.num_rows; ++i) {
      matrix[next++].assign(rows.begin() + i * bytes, rows.begin() + (i + 1) * bytes);
    }
  }
  auto weight = std::make_unique<PackedWeight>(kMixedParts, kMixedCols, dtype, order);
  for (int i = 0, place = 0; i < weight->num_slices(); ++i) {
    std::vector<std::byte> rows;
    for (int end = place + weight->cols(i); place < end; ++place) {
      const int64_t row = row_in_packing_order(place, kMixedRows, weight->cols(0), order);
      rows.insert(rows.end(), matrix[row].begin(), matrix[row].end());
    }
    EXPECT_EQ(std::ssize(rows), weight->slice_row_bytes(i));
    weight->pack_slice(i, rows.data());
  }
  return weight;
}

// y [rows, n] in the order of the matrix.
std::vector<float> product(CpuPool& pool, const PackedWeight& weight, const void* x, int rows) {
  std::vector<float> y(static_cast<size_t>(rows) * kMixedRows);
  for_each_product_tile(pool, weight, x, rows, rows,
                        [&](int slice, int64_t first, int count, const float* products) {
                          const int side = weight.cols(slice) / weight.num_sides();
                          for (int r = 0; r < count; ++r) {
                            for (int c = 0; c < weight.cols(slice); ++c) {
                              const int col = c / side * kMixedRows / 2 * (weight.num_sides() - 1) +
                                              weight.first_col(slice) + c % side;
                              y[static_cast<size_t>((first + r) * kMixedRows + col)] =
                                  products[r * weight.cols(slice) + c];
                            }
                          }
                        });
  return y;
}

// The bits of a quantised product depend on the row of x alone: not on the number of rows, threads,
// or the order of the weight.
TEST(PackedWeight, QuantizedRowsAreBitEqualForEveryCount) {
  constexpr int kMax = 1100;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const TypedData x = typed_data(random_floats(size_t{kMax} * kMixedCols, 5), dtype);
    const auto plain = pack_mixed(dtype, WeightOrder::kPlain);
    const auto pairs = pack_mixed(dtype, WeightOrder::kGateUp);
    EXPECT_NE(plain->quantized(), nullptr);
    CpuPool one(1), three(3);
    const std::vector<float> all = product(three, *pairs, x.data(), kMax);
    for (int r = 0; r < kMax; r += 37) {
      const auto* row = x.bytes.data() + size_t(r) * kMixedCols * dtype_size(dtype);
      const auto y = product(one, *plain, row, 1);
      ASSERT_EQ(std::memcmp(y.data(), all.data() + size_t(r) * kMixedRows, y.size() * 4), 0) << r;
    }
    for (int rows = 1; rows < kMax; rows = rows < 70 ? rows + 1 : rows * 3 - 1) {
      for (const PackedWeight* weight : {plain.get(), pairs.get()}) {
        const auto y = product(rows % 2 == 0 ? one : three, *weight, x.data(), rows);
        ASSERT_EQ(std::memcmp(y.data(), all.data(), y.size() * 4), 0) << rows << " rows";
      }
    }
  }
}

TEST(PackedWeight, KeepsFormsWithKernelsAndWholeGroups) {
  EXPECT_TRUE(keeps_quantized({8, GroupScale::kHalf, 32}, 96));
  EXPECT_FALSE(keeps_quantized({8, GroupScale::kHalf, 32}, 100));
  EXPECT_FALSE(keeps_quantized({4, GroupScale::kSuper, 32}, 128));
  EXPECT_FALSE(keeps_quantized({7, GroupScale::kHalf, 32}, 96));
  EXPECT_EQ(keeps_quantized({16, GroupScale::kNone, 1}, 100), has_half_products());
  const QuantizedWeight made =
      make_quantized_weight(kMixedParts, kMixedCols, DType::kBF16, WeightOrder::kGateUp);
  ASSERT_NE(made.handle, nullptr);
  EXPECT_EQ(made.slice_rows % 32, 0);
  free_weight(made.handle);
}

}  // namespace
}  // namespace foretoken::cpu
