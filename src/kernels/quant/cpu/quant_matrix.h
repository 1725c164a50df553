#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/cpu/page_block.h"
#include "device/device.h"
#include "kernels/quant/cpu/quant_kernels.h"
#include "kernels/quant/cpu/quant_rows.h"

namespace foretoken::cpu {

inline constexpr int kMaxQuantTileRows = 64;  // of a call

// The columns of a quantised weight matrix [n, k] in packing order (kernels/gemm/pack_rows.h), in
// slices of `slice_cols` of them, fewer in the last one. A slice is packed in blocks of at most
// kQuantCols columns of one form.
class QuantMatrix {
 public:
  // Room for `parts`, which lie in packing order. Throws std::bad_alloc.
  QuantMatrix(std::span<const QuantizedPart> parts, int64_t k, int64_t slice_cols);

  int num_slices() const { return static_cast<int>(slices_.size()); }
  // Bytes of the rows of slice i as base/quantized_rows.h lays them out.
  int64_t slice_row_bytes(int i) const { return slice(i).row_bytes; }
  // Packs these rows. Different slices by any threads.
  void pack_slice(int i, const std::byte* rows);
  // The k floats of a row of the matrix, as dequantize_row makes them. Any thread.
  void read_row(int64_t row, float* out) const;

  // y[num_rows, columns of slice i], dense = rows [first_row, first_row + num_rows) of x times the
  // slice. x has blocks of kernels.max_rows rows: the rows are whole blocks, and at most
  // kMaxQuantTileRows.
  void multiply(const QuantKernels& kernels, int i, const QuantRows& x, int first_row, int num_rows,
                float* y) const;

 private:
  struct Block {
    int first_col;  // in its slice
    int cols;
    int form;
    size_t codes;  // from the beginning of the memory
    size_t scales;
  };
  struct Slice {
    size_t first_block;
    size_t end_block;
    int cols;
    int64_t row_bytes;
  };

  struct Output {
    float* data;
    int cols;  // of a row
  };
  // Some steps of k for some rows of x.
  struct Piece {
    int64_t first_step;
    int64_t num_steps;
    int first_row;
    int num_rows;
  };

  const Slice& slice(int i) const { return slices_[static_cast<size_t>(i)]; }
  void cut(std::span<const QuantizedPart> parts, int64_t slice_cols);
  int index_of_form(const QuantForm& form);
  size_t place_blocks();  // bytes of all
  const Block& block_of(int64_t row) const;
  void pack_block(const Block& block, const std::byte* rows);
  void multiply_blocks(const QuantKernels& kernels, std::span<const Block> blocks,
                       const QuantRows& x, int first_row, int num_rows, Output y) const;
  void multiply_block(const QuantKernels& kernels, const Block& block, const QuantRows& x,
                      Piece piece, float* tile) const;

  int64_t k_;
  int64_t slice_cols_;
  std::vector<QuantForm> forms_;
  std::vector<Block> blocks_;
  std::vector<Slice> slices_;
  PageBlock memory_;
};

}  // namespace foretoken::cpu
