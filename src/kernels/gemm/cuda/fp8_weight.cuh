#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/dequant_weight.cuh"
#include "kernels/gemm/gemm.h"
#include "kernels/rows/round_rows.h"

// Products of rows that round_rows made with weights of E4M3: a sum over units of 128 k in their
// order, sum = fma(scale, part, sum), where a part is a chain of four wgmma that begins at zero and
// scale = that of the unit of x, times that of the unit of the weight's row where it has one.
// Scales of rows of the weight multiply the sum at the end. The bits of a part depend neither on
// the shape of the product nor on which operand is which, so that those of a row depend on it
// alone.
namespace foretoken::cuda {

static_assert(kUnitK == kRoundedGroup);

// Whether such a weight is one for rounded rows. Its codes lie in units of 8 rows x 128 k as
// bfloat16 do in atoms of 8 x 64: a pair of codes is an element.
__host__ __device__ constexpr bool takes_rounded(DequantKind kind) {
  return kind == DequantKind::kFp8Rows || kind == DequantKind::kFp8RowsBy128;
}

// QuantizedMatrix::row_scales of it: [units][fp8_scale_rows(rows)] where units have scales, else
// [fp8_scale_rows(rows)]. Kernels read some behind the last.
inline constexpr int kFp8ScaleRows = 256;
__host__ __device__ constexpr int64_t fp8_scale_rows(int64_t rows) {
  return int64_t{ceil_div(rows, kFp8ScaleRows)} * kFp8ScaleRows;
}
inline int64_t num_fp8_scales(const QuantizedMatrix& matrix) {
  const int64_t units = matrix.kind == DequantKind::kFp8RowsBy128 ? num_units(matrix.k) : 1;
  return units * fp8_scale_rows(matrix.rows) + kFp8ScaleRows;
}

// Fills rows of it from rows as base/quantized_rows.h lays them out, which the device can read.
void launch_pack_fp8(const PackRowsArgs& args, const void* rows, const QuantizedMatrix& matrix,
                     cudaStream_t stream);

// GemmArgs as of launch_gemm, whose weight is of `matrix` and whose x round_rows made.
void launch_gemm_fp8(const GemmArgs& args, const QuantizedMatrix& matrix, cudaStream_t stream);

// What the kernels read beside the codes.
struct Fp8Scales {
  const float* of_x;  // [units][x_stride]
  int x_stride;
  const float* of_units;  // of the weight, [units][w_stride]; null: it has scales of rows
  const float* of_rows;   // of the weight; null: it has scales of units
  int w_stride;
};

inline Fp8Scales fp8_scales(const GemmArgs& args, const QuantizedMatrix& matrix) {
  const bool by_unit = matrix.kind == DequantKind::kFp8RowsBy128;
  return {.of_x = rounded_scales(args.x, args.max_rows, args.k),
          .x_stride = static_cast<int>(rounded_scale_rows(args.max_rows)),
          .of_units = by_unit ? matrix.row_scales : nullptr,
          .of_rows = by_unit ? nullptr : matrix.row_scales,
          .w_stride = static_cast<int>(fp8_scale_rows(matrix.rows))};
}

}  // namespace foretoken::cuda
