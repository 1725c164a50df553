#pragma once
#include "base/host_device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Greedy drafts without writing logits: ids[i] = id_map[argmax over the admitted rows n of
// x[i] . weight[n]] for the live logits rows, ties to the lowest n; -1 when no row is admitted or
// every admitted product is NaN or -inf. Row n is admitted when id_map is null or id_map[n] >= 0.
// The products are those of the gemm op, bit for bit.
struct HeadArgmaxArgs {
  static constexpr Op kOp = Op::kHeadArgmax;
  const StepCounts* counts;
  const void* x;          // [max_rows, k] of dtype
  const void* weight;     // handle of Device::pack_weight, [n, k] of dtype
  const int32_t* id_map;  // [n] or null: n itself
  int32_t* ids;           // [max_rows]
  void* workspace;        // head_argmax_bytes(max_rows, n)
  int32_t max_rows;
  int32_t n;
  int32_t k;
  DType dtype;
  // Where the weight is a rank's rows of a matrix, from its row `first_row` on: the best key of
  // each row goes to keys [max_rows], nothing to ids; id_map is that of the rank's rows.
  uint64_t* keys = nullptr;
  int32_t first_row = 0;
};

// Keys order by product, then by the lowest row of the matrix; 0: no row is admitted.
FT_HD inline uint64_t argmax_key(uint32_t ordered_product, int32_t row) {
  return uint64_t{ordered_product} << 32 | (0xffffffffu - static_cast<uint32_t>(row));
}
FT_HD inline int32_t row_of_argmax_key(uint64_t key) {
  return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(key));
}

// Scratch of a call with up to max_rows rows, on every device.
int64_t head_argmax_bytes(int32_t max_rows, int32_t n);

void head_argmax(Queue& queue, const HeadArgmaxArgs& args);

}  // namespace foretoken
