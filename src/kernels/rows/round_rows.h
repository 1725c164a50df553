#pragma once
#include <algorithm>
#include <cstdint>

#include "base/host_device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/row_kind.h"
#include "kernels/step_types.h"

namespace foretoken {

// Columns of a row that have a scale of their own.
inline constexpr int32_t kRoundedGroup = 128;

inline constexpr float kLeastInt8Row = 1e-5f;  // largest magnitude of a row, at least

enum class RowRounding : int32_t {
  kE4m3,  // groups of a row to E4M3
  kInt8,  // each row to whole multiples, -128 to 127, of its largest magnitude (1e-5 at least) over
          // 127, half to even (BitNet, Ma et al. 2025)
};

// Rounds rows to E4M3 for products with weights of QuantForm::rounds_rows. Each kRoundedGroup
// columns of a row are divided by fp8_group_scale of their largest magnitude and rounded to the
// nearest code (e4m3_code), so that what becomes of a row depends on it alone; or all are divided
// by `scale`, where that is not 0, and the largest codes stand for what is larger. Live rows as of
// GemmArgs. `rounded`: rounded_rows_bytes of memory for GemmArgs::x of such a product, in a layout
// of the device: on a CPU code * scale, rounded to dtype, [max_rows, columns]; on CUDA codes
// [max_rows][rounded_columns], zero behind `columns`, then scales (rounded_scales). With kInt8, for
// any product, they are rows [max_rows, columns] of dtype on all devices. Where ranks have parts of
// a row the largest magnitudes of all parts are given (MeasurePartsArgs), and the row's is the
// largest of these.
struct RoundRowsArgs {
  static constexpr Op kOp = Op::kRoundRows;
  const StepCounts* counts;
  const void* x;  // [max_rows, columns] of dtype
  void* rounded;  // not x
  RowKind row_kind;
  int32_t row_offset;
  int32_t max_rows;
  int32_t columns;
  DType dtype;          // kF32 or kBF16; on CUDA kBF16, with kInt8 both
  int32_t per_row = 1;  // rows of x that each live row of the step has; divides max_rows
  RowRounding rounding = RowRounding::kE4m3;
  float scale = 0;  // of kE4m3: positive and finite, or 0: each group's own
  const float* highest =
      nullptr;  // of kInt8: [max_rows, num_entries], the first num_highest; or null
  int32_t num_highest = 0;
  int32_t num_entries = 0;
};

FT_HD inline int64_t rounded_columns(int64_t columns) {
  return (columns + kRoundedGroup - 1) / kRoundedGroup * kRoundedGroup;
}

// Scales on CUDA lie behind the codes, for each group rounded_scale_rows(max_rows) floats.
FT_HD inline int64_t rounded_scale_rows(int64_t max_rows) { return (max_rows + 255) / 256 * 256; }
FT_HD inline const float* rounded_scales(const void* rounded, int64_t max_rows, int64_t columns) {
  const int64_t codes = (max_rows * rounded_columns(columns) + 255) / 256 * 256;
  return reinterpret_cast<const float*>(static_cast<const uint8_t*>(rounded) + codes);
}

// On any device. Kernels read some scales behind the last.
inline int64_t rounded_rows_bytes(int64_t max_rows, int64_t columns, DType dtype) {
  const int64_t groups = rounded_columns(columns) / kRoundedGroup;
  const int64_t scales = groups * rounded_scale_rows(max_rows) * int64_t{sizeof(float)};
  const int64_t codes = (max_rows * rounded_columns(columns) + 255) / 256 * 256;
  constexpr int64_t kBehind = 1024;
  return std::max(codes + scales + kBehind,
                  max_rows * columns * static_cast<int64_t>(dtype_size(dtype)));
}

void round_rows(Queue& queue, const RoundRowsArgs& args);

}  // namespace foretoken
