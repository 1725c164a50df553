#pragma once
#include <cstdint>

#include "device/cpu/cpu_pool.h"
#include "device/dtype.h"
#include "kernels/quant/cpu/quant_kernels.h"

namespace foretoken::cpu {

inline constexpr int kMaxQuantizedRows = 512;  // at once; a multiple of kMaxQuantRows

// Rows of x for the products with quantised weights. They lie in blocks of `block_rows` rows, fewer
// in the last one; a block is [k / 32, its rows].
struct QuantRows {
  const QuantStep* steps;
  int64_t num_steps;  // of a row
  int num_rows;
  int block_rows;

  int rows_of_block(int block) const {
    const int left = num_rows - block * block_rows;
    return left < block_rows ? left : block_rows;
  }
  const QuantStep* block(int index) const {
    return steps + int64_t{index} * block_rows * num_steps;
  }
};

// Writes the steps of a row, `stride` apart. Each has the scale of its largest element, and a row
// is quantised by itself. A step with an infinity or NaN has a scale of NaN. k is a multiple of 32.
void quantize_row(const void* x, DType dtype, int64_t k, int64_t stride, QuantStep* steps);

// Room on a thread that calls quantize_rows for rows of k elements. Start-up only.
void reserve_quant_rows(int64_t k);

// Quantises rows of x, dense [num_rows, k], into memory of the calling thread that stays until its
// next call. num_rows <= kMaxQuantizedRows.
QuantRows quantize_rows(CpuPool& pool, const void* x, DType dtype, int num_rows, int64_t k,
                        int block_rows);

}  // namespace foretoken::cpu
