#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/cpu/page_block.h"
#include "device/row_table.h"
#include "kernels/gemm/cpu/half_kernels.h"

namespace foretoken::cpu {

// A float16 weight matrix in slices of columns of y, packed for half_kernels(). It is widened in
// registers only; x and y are floats.
class HalfMatrix {
 public:
  // Room for slices of so many columns, in order. Throws std::bad_alloc.
  HalfMatrix(const std::vector<int>& slice_cols, int64_t k);

  // Packs slice i from its rows, row-major [columns of the slice, k]. Different slices by any
  // threads.
  void pack_slice(int i, const std::byte* rows);

  // The packed rows, one for each column of y; none where a slice before the last one ends within a
  // group of kHalfCols.
  RowTable rows() const;

  // y[rows, columns of slice i], dense = x[rows, k], dense, times the slice.
  void multiply(const HalfKernels& kernels, int i, const float* x, float* y, int rows) const;

 private:
  struct Slice {
    size_t first;  // element of the memory
    int cols;
  };

  void multiply_block(const HalfKernels& kernels, const Slice& slice, int first_col, const float* x,
                      float* y, int rows) const;

  int64_t k_;
  std::vector<Slice> slices_;
  PageBlock memory_;
};

}  // namespace foretoken::cpu
