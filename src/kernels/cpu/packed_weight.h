#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "kernels/cpu/gemm_onednn.h"

namespace foretoken::cpu {

// A weight matrix [n, k] cut into slices of columns of y, the units of parallel work. The cut
// depends on n, k and the type alone. What a pack_weight handle points to.
class PackedWeight {
 public:
  // Copies the stacked parts. Throws std::bad_alloc or oneDNN's exceptions.
  PackedWeight(std::span<const WeightPart> parts, int64_t k, DType dtype);

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  DType dtype() const { return dtype_; }
  int num_slices() const { return static_cast<int>(slices_.size()); }
  // Columns of y in slice i: [first_col, first_col + cols), at most kMaxSliceCols.
  int first_col(int i) const { return slices_[static_cast<size_t>(i)].first_col; }
  int cols(int i) const { return slices_[static_cast<size_t>(i)].cols; }

  // y[rows, cols(i)], dense and in float, from rows <= kMaxTileRows rows of x. Of x at most
  // `readable_rows` >= rows rows may be read; y has room for kMaxTileRows rows.
  void multiply(int i, const void* x, float* y, int rows, int64_t readable_rows) const;

 private:
  struct Slice {
    int first_col;
    int cols;
    std::unique_ptr<OnednnSlice> onednn;  // null: `plain` holds the weights as float
    std::vector<float> plain;
  };

  void multiply_plain_slice(const Slice& slice, const void* x, float* y, int rows) const;

  int64_t n_ = 0;
  int64_t k_;
  DType dtype_;
  std::vector<Slice> slices_;
};

}  // namespace foretoken::cpu
