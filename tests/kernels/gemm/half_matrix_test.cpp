#include "kernels/gemm/cpu/half_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

constexpr int64_t kK = 700;
constexpr int kCols = 90, kSlice = 70;

// A matrix [90, 700] in slices of 70 and 20 columns.
class HalfMatrixTest : public ::testing::Test {
 protected:
  HalfMatrixTest() : matrix_({kSlice, kCols - kSlice}, kK) {
    for (const float value : random_floats(kCols * kK, 1)) {
      halves_.push_back(half_from_float(value));
      floats_.push_back(half_to_float(halves_.back()));
    }
    const auto* rows = reinterpret_cast<const std::byte*>(halves_.data());
    matrix_.pack_slice(0, rows);
    matrix_.pack_slice(1, rows + 2 * kSlice * kK);
  }
  // y [rows, 90].
  std::vector<float> multiply(const HalfKernels& kernels, const float* x, int rows) const {
    std::vector<float> y(static_cast<size_t>(rows * kCols));
    for (int i = 0; i < 2; ++i) {
      const int cols = i == 0 ? kSlice : kCols - kSlice;
      std::vector<float> tile(static_cast<size_t>(rows * cols));
      matrix_.multiply(kernels, i, x, tile.data(), rows);
      for (int r = 0; r < rows; ++r) {
        std::copy_n(tile.data() + r * cols, cols, y.data() + r * kCols + i * kSlice);
      }
    }
    return y;
  }

  HalfMatrix matrix_;
  std::vector<uint16_t> halves_;
  std::vector<float> floats_;
};

TEST_F(HalfMatrixTest, LendsRowsThatSlicesDoNotPart) {
  EXPECT_FALSE(matrix_.rows().exists());
  const HalfMatrix whole({32, 48, 10}, kK);
  EXPECT_TRUE(whole.rows().makes(DType::kF32));
  EXPECT_EQ(whole.rows().together, kHalfCols);
}

TEST_F(HalfMatrixTest, MatchesDouble) {
  const std::vector<float> x = random_floats(7 * kK, 2);
  for (const HalfKernels& kernels : half_kernels()) {
    const std::vector<float> y = multiply(kernels, x.data(), 7);
    for (int r = 0; r < 7; ++r) {
      for (int c = 0; c < kCols; ++c) {
        double want = 0, size = 0;
        for (int i = 0; i < kK; ++i) {
          const double term =
              double(x[static_cast<size_t>(r * kK + i)]) * floats_[static_cast<size_t>(c * kK + i)];
          want += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(y[static_cast<size_t>(r * kCols + c)], want, size * 4e-6) << kernels.name;
      }
    }
  }
}

// Every kind of processor gives the same bits, for every number of rows.
TEST_F(HalfMatrixTest, BitsDependOnTheRowAlone) {
  constexpr int kRows = 67;
  const std::vector<float> x = random_floats(kRows * kK, 3);
  std::vector<float> alone;
  for (int r = 0; r < kRows; ++r) {
    const auto y = multiply(half_kernels().front(), x.data() + r * kK, 1);
    alone.insert(alone.end(), y.begin(), y.end());
  }
  for (const HalfKernels& kernels : half_kernels()) {
    const bool slow = std::string_view(kernels.name) == "plain";
    for (const int rows : slow ? std::vector<int>{1, 9} : std::vector<int>{1, 2, 5, 6, 7, 33, 67}) {
      const auto y = multiply(kernels, x.data(), rows);
      ASSERT_EQ(std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)), 0)
          << kernels.name << ", " << rows << " rows";
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
