#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/cpu/cpu_pool.h"
#include "device/cpu/page_block.h"
#include "device/device.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/gemm/cpu/bf16_matrix.h"
#include "kernels/gemm/cpu/gemm_onednn.h"
#include "kernels/gemm/cpu/half_matrix.h"
#include "kernels/quant/cpu/quant_matrix.h"

namespace foretoken::cpu {

// A weight matrix [n, k] cut into slices of columns of y, the units of parallel work. The cut
// depends on n, k, the type and the unit alone. What a pack_weight handle points to.
class PackedWeight {
 public:
  // Room; each slice is to be packed before it is multiplied with. unit_rows as of
  // Device::make_weight.
  PackedWeight(int64_t n, int64_t k, DType dtype, WeightOrder order, int64_t unit_rows = 0);
  // Copies the stacked parts. Throws std::bad_alloc or oneDNN's exceptions.
  PackedWeight(std::span<const WeightPart> parts, int64_t k, DType dtype,
               WeightOrder order = WeightOrder::kPlain, int64_t unit_rows = 0);
  // Room for stacked parts that stay quantised, or halves, all of them; x is of type `dtype`, of
  // halves kF32. Throws std::bad_alloc.
  PackedWeight(std::span<const QuantizedPart> parts, int64_t k, DType dtype, WeightOrder order,
               int64_t unit_rows = 0);

  // Packs slice i from its rows, row-major [cols(i), k], or as base/quantized_rows.h lays them out.
  // Slices may be packed by several threads at once. Throws std::bad_alloc or oneDNN's exceptions.
  void pack_slice(int i, const void* rows);
  // Bytes of these rows.
  int64_t slice_row_bytes(int i) const;

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  DType dtype() const { return dtype_; }
  WeightOrder order() const { return order_; }
  int num_sides() const { return order_ == WeightOrder::kGateUp ? 2 : 1; }
  int num_slices() const { return static_cast<int>(slices_.size()); }
  // Columns of y in slice i: [first_col, first_col + cols), at most kMaxSliceCols. By kGateUp: the
  // gates [first_col, first_col + cols / 2), then the ups of the same columns.
  int first_col(int i) const { return slices_[static_cast<size_t>(i)].first_col; }
  int cols(int i) const { return slices_[static_cast<size_t>(i)].cols; }

  // As of Device::rows_of_weight.
  RowTable rows() const {
    if (order_ != WeightOrder::kPlain) return {};
    if (quantized_ != nullptr) return {quantized_.get(), dtype_, 1, true};
    return halves_ != nullptr ? halves_->rows() : RowTable();
  }

  // Slices that a thread multiplies many rows with together, so that rows of x are read once for
  // all.
  int slices_together() const { return slices_together_; }

  // Null where the weight is not quantised; then `multiply` is for it.
  const QuantMatrix* quantized() const { return quantized_.get(); }
  // Of codes and scales, without what fills pages and blocks up; 0 where it is not quantised.
  int64_t quantized_bytes() const { return quantized_bytes_; }

  // y[rows, cols(i)], dense and in float, from rows <= kMaxTileRows rows of x. Of x at most
  // `readable_rows` >= rows rows may be read; y has room for kMaxTileRows rows.
  void multiply(int i, const void* x, float* y, int rows, int64_t readable_rows) const;

 private:
  struct Slice {
    int first_col;
    int cols;
    std::unique_ptr<OnednnSlice> onednn;  // null: bf16_, or `plain` holds the weights as float
    std::vector<float> plain;
    size_t onednn_offset = 0;  // in onednn_memory_
  };

  void take_quantized_memory(std::span<const QuantizedPart> ordered, int64_t slice_cols);
  void take_bf16_memory();
  void take_onednn_memory();

  void multiply_plain_slice(const Slice& slice, const void* x, float* y, int rows) const;

  int64_t n_ = 0;
  int64_t k_;
  DType dtype_;
  WeightOrder order_;
  PageBlock onednn_memory_;
  std::vector<Slice> slices_;
  int slices_together_ = 1;
  std::unique_ptr<Bf16Matrix> bf16_;
  std::unique_ptr<HalfMatrix> halves_;
  std::unique_ptr<QuantMatrix> quantized_;
  int64_t quantized_bytes_ = 0;
};

static_assert(kMaxTileRows <= kMaxQuantTileRows);
static_assert(kMaxQuantizedRows % kMaxTileRows == 0);

// Made by the threads that multiply, not by every one of the process.
struct ProductTile {
  alignas(64) float products[kMaxTileRows * kMaxSliceCols];
};

// for_each_product_tile of a quantised weight.
template <class Use>
void for_each_quantized_tile(CpuPool& pool, const PackedWeight& weight, const void* x, int rows,
                             Use&& use) {
  const QuantKernels& kernels = quant_kernels().front();
  const int64_t row_bytes = weight.k() * static_cast<int64_t>(dtype_size(weight.dtype()));
  for (int done = 0; done < rows; done += kMaxQuantizedRows) {
    const int at_once = std::min(kMaxQuantizedRows, rows - done);
    const QuantRows quantized =
        quantize_rows(pool, static_cast<const std::byte*>(x) + done * row_bytes, weight.dtype(),
                      at_once, weight.k(), kernels.max_rows);
    const int64_t tiles = (at_once + kMaxTileRows - 1) / kMaxTileRows;
    pool.parallel_for(weight.num_slices() * tiles, [&](int64_t index, int) {
      float* tile = thread_scratch<ProductTile>().products;
      const int slice = static_cast<int>(index / tiles);
      const auto first = static_cast<int>(index % tiles * kMaxTileRows);
      const int count = std::min(kMaxTileRows, at_once - first);
      weight.quantized()->multiply(kernels, slice, quantized, first, count, tile);
      use(slice, done + first, count, static_cast<const float*>(tile));
    });
  }
}

// Products of rows [0, rows) of x with the weight, cut into tiles that the pool's threads share:
// use(slice, first, count, products) gets those of rows [first, first + count) with a slice, dense
// [count, cols(slice)] in memory that is the thread's until it returns. Tiles of a slice follow one
// another, so that a thread keeps the slice in its cache. Of x `readable_rows` may be read.
template <class Use>
void for_each_product_tile(CpuPool& pool, const PackedWeight& weight, const void* x, int rows,
                           int64_t readable_rows, Use&& use) {
  if (weight.quantized() != nullptr) return for_each_quantized_tile(pool, weight, x, rows, use);
  const int64_t tiles = (rows + kMaxTileRows - 1) / kMaxTileRows;
  const int64_t row_bytes = weight.k() * static_cast<int64_t>(dtype_size(weight.dtype()));
  const int together = rows > kMaxTileRows ? weight.slices_together() : 1;
  const int64_t groups = (weight.num_slices() + together - 1) / together;
  pool.parallel_for(groups * tiles, [&](int64_t index, int) {
    float* tile = thread_scratch<ProductTile>().products;
    const auto first_slice = static_cast<int>(index / tiles) * together;
    const int end_slice = std::min(first_slice + together, weight.num_slices());
    const int64_t first = index % tiles * kMaxTileRows;
    const auto count = static_cast<int>(std::min<int64_t>(kMaxTileRows, rows - first));
    for (int slice = first_slice; slice < end_slice; ++slice) {
      weight.multiply(slice, static_cast<const std::byte*>(x) + first * row_bytes, tile, count,
                      readable_rows - first);
      use(slice, first, count, static_cast<const float*>(tile));
    }
  });
}

}  // namespace foretoken::cpu
