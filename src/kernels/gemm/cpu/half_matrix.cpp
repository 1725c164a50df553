#include "kernels/gemm/cpu/half_matrix.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace foretoken::cpu {
namespace {

constexpr int kHalfBlockCols = kMaxHalfGroups * kHalfCols;
constexpr int kMaxRows = 60;         // at once: whole products
constexpr int64_t kHalfPiece = 512;  // of k, with many rows: 64 KiB of weights and 120 of x
constexpr int64_t kAhead = 4096;     // bytes that kernels prefetch behind the end

int num_groups(int cols) { return (cols + kHalfCols - 1) / kHalfCols; }

}  // namespace

HalfMatrix::HalfMatrix(const std::vector<int>& slice_cols, int64_t k) : k_(k) {
  FT_CHECK(k > 0);
  size_t elements = 0;
  for (const int cols : slice_cols) {
    slices_.push_back({elements, cols});
    elements += static_cast<size_t>(num_groups(cols)) * kHalfCols * static_cast<size_t>(k);
  }
  // Zero where groups have fewer columns.
  memory_ = PageBlock(elements * sizeof(uint16_t) + kAhead);
}

void HalfMatrix::pack_slice(int i, const std::byte* rows) {
  const Slice& slice = slices_[static_cast<size_t>(i)];
  auto* to = reinterpret_cast<uint16_t*>(memory_.data()) + slice.first;
  for (int64_t col = 0; col < slice.cols; ++col) {
    const std::byte* row = rows + 2 * col * k_;
    uint16_t* column = to + col / kHalfCols * kHalfCols * k_ + col % kHalfCols;
    for (int64_t j = 0; j < k_; ++j) std::memcpy(column + j * kHalfCols, row + 2 * j, 2);
  }
}

RowTable HalfMatrix::rows() const {
  const auto ends_within_group = [](const Slice& slice) { return slice.cols % kHalfCols != 0; };
  if (std::any_of(slices_.begin(), slices_.end() - 1, ends_within_group)) return {};
  return {memory_.data(), DType::kF16, kHalfCols};
}

void HalfMatrix::multiply(const HalfKernels& kernels, int i, const float* x, float* y,
                          int rows) const {
  const Slice& slice = slices_[static_cast<size_t>(i)];
  for (int row = 0; row < rows; row += kMaxRows) {
    const int count = std::min(kMaxRows, rows - row);
    for (int col = 0; col < slice.cols; col += kHalfBlockCols) {
      multiply_block(kernels, slice, col, x + row * k_, y + int64_t{row} * slice.cols, count);
    }
  }
}

// With many rows over a piece of k at a time, so that neither weights nor x leave the nearest
// caches.
void HalfMatrix::multiply_block(const HalfKernels& kernels, const Slice& slice, int first_col,
                                const float* x, float* y, int rows) const {
  alignas(64) float sums[kMaxRows * kHalfBlockCols];
  std::fill_n(sums, rows * kHalfBlockCols, 0.0f);
  const int cols = std::min(kHalfBlockCols, slice.cols - first_col);
  const auto* weights =
      reinterpret_cast<const uint16_t*>(memory_.data()) + slice.first + first_col * k_;
  const int64_t at_once = rows > kMaxHalfRows ? kHalfPiece : k_;
  for (int64_t first = 0; first < k_; first += at_once) {
    const int64_t count = std::min(at_once, k_ - first);
    for (int row = 0; row < rows; row += kMaxHalfRows) {
      const int num_rows = std::min(kMaxHalfRows, rows - row);
      kernels.products[num_rows - 1][num_groups(cols) - 1](
          {weights + first * kHalfCols, kHalfCols * k_, x + row * k_ + first, k_, count,
           sums + row * kHalfBlockCols});
    }
  }
  for (int row = 0; row < rows; ++row) {
    std::copy_n(sums + row * kHalfBlockCols, cols, y + int64_t{row} * slice.cols + first_col);
  }
}

}  // namespace foretoken::cpu
