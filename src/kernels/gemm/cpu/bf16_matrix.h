#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/cpu/page_block.h"
#include "kernels/gemm/cpu/bf16_kernels.h"

namespace foretoken::cpu {

// Whether weights of k columns can be packed for bf16_kernels() here.
bool has_bf16_products(int64_t k);

// A bfloat16 weight matrix in slices of columns of y, packed for bf16_kernels().
class Bf16Matrix {
 public:
  // Room for slices of so many columns, in order; k is a multiple of kBf16Step. Throws
  // std::bad_alloc.
  Bf16Matrix(const std::vector<int>& slice_cols, int64_t k);

  // Packs slice i from its rows, row-major [columns of the slice, k]. Different slices by any
  // threads.
  void pack_slice(int i, const uint16_t* rows);

  // y[rows, columns of slice i], dense = x[rows, k], dense, times the slice.
  void multiply(const Bf16Kernels& kernels, int i, const uint16_t* x, float* y, int rows) const;

 private:
  struct Slice {
    size_t first;  // element of the memory
    int cols;
  };

  const uint16_t* data() const { return reinterpret_cast<const uint16_t*>(memory_.data()); }
  // Of `slice` from column `col` on.
  Bf16Block block_at(const Slice& slice, int col) const;

  int64_t k_;
  std::vector<Slice> slices_;
  PageBlock memory_;
};

}  // namespace foretoken::cpu
