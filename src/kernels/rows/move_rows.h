#pragma once
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/row_kind.h"
#include "kernels/step_types.h"

namespace foretoken {

// out[to(r)][out_offset + c] = in[from(r)][c] for c < width and the live rows r, converted to
// out_dtype: gathers, scatters and casts rows. from(r) = from[r] and to(r) = to[r], or r without.
// Two live rows never have the same destination.
struct MoveRowsArgs {
  static constexpr Op kOp = Op::kMoveRows;
  const StepCounts* counts;
  const void* in;       // rows of `in_stride` elements of in_dtype, of which the first are read
  void* out;            // rows of `out_stride` elements of out_dtype
  const int32_t* from;  // [max_rows] or null
  const int32_t* to;    // [max_rows] or null
  RowKind row_kind;     // which live count
  int32_t max_rows;
  int32_t width;
  int32_t out_stride;
  int32_t out_offset;
  DType in_dtype;
  DType out_dtype;
  int32_t in_stride = 0;  // 0: width
};

void move_rows(Queue& queue, const MoveRowsArgs& args);

}  // namespace foretoken
