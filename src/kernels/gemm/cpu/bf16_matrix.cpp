#include "kernels/gemm/cpu/bf16_matrix.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace foretoken::cpu {
namespace {

constexpr int kBlockCols = kBf16Tiles * kBf16Lanes;

int64_t padded_cols(int cols) { return (cols + kBf16Lanes - 1) / kBf16Lanes * kBf16Lanes; }

// A column of a tile of a step: 16 pairs of neighbours, a vector apart.
void pack_column(const uint16_t* row, uint16_t* to) {
  for (int i = 0; i < kBf16Step; i += 2) {
    std::memcpy(to + i * kBf16Lanes, row + i, 2 * sizeof(uint16_t));
  }
}

}  // namespace

bool has_bf16_products(int64_t k) { return k % kBf16Step == 0 && !bf16_kernels().empty(); }

Bf16Matrix::Bf16Matrix(const std::vector<int>& slice_cols, int64_t k) : k_(k) {
  FT_CHECK(k > 0 && k % kBf16Step == 0);
  size_t elements = 0;
  for (const int cols : slice_cols) {
    slices_.push_back({elements, cols});
    elements += static_cast<size_t>(padded_cols(cols) * k);
  }
  // Zero where tiles have fewer columns.
  memory_ = PageBlock(elements * sizeof(uint16_t));
}

Bf16Block Bf16Matrix::block_at(const Slice& slice, int col) const {
  return {data() + slice.first + static_cast<size_t>(col * k_),
          std::min(kBlockCols, slice.cols - col), k_ / kBf16Step};
}

void Bf16Matrix::pack_slice(int i, const uint16_t* rows) {
  const Slice& slice = slices_[static_cast<size_t>(i)];
  for (int first = 0; first < slice.cols; first += kBlockCols) {
    const Bf16Block block = block_at(slice, first);
    auto* to = const_cast<uint16_t*>(block.data);
    for (int64_t step = 0; step < block.num_steps; ++step) {
      for (int col = 0; col < block.cols; ++col) {
        const int64_t tile = step * block.num_tiles() + col / kBf16Lanes;
        pack_column(rows + (first + col) * k_ + step * kBf16Step,
                    to + tile * kBf16Step * kBf16Lanes + col % kBf16Lanes * 2);
      }
    }
  }
}

void Bf16Matrix::multiply(const Bf16Kernels& kernels, int i, const uint16_t* x, float* y,
                          int rows) const {
  const Slice& slice = slices_[static_cast<size_t>(i)];
  for (int col = 0; col < slice.cols; col += kBlockCols) {
    kernels.multiply(block_at(slice, col), {x, k_, y + col, slice.cols, rows});
  }
}

}  // namespace foretoken::cpu
