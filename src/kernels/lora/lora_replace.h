#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/lora/lora.h"
#include "kernels/op.h"

namespace foretoken {

// A matrix that an adapter has in the place of the model's, whole.
struct LoraWhole {
  const void* rows =
      nullptr;        // [at least count, to a multiple of kLoraRankStep]; null: it has none
  int32_t count = 0;  // ids beyond have no row
};

// y = scale * M x, in float, for each row whose adapter has a whole matrix M [n, k]; columns of y
// behind its `count` become minus infinity. With `token_ids` M is a table [k, n]:
// y = scale * M[token_ids[row]], and that of id 0 for an id outside of [0, count). Other rows stay
// as they are. The bits of a row of y depend on that row of x and its adapter alone. Behind what
// y is otherwise, and before what is added to it; group_lora says which rows are an adapter's.
struct LoraReplaceArgs {
  static constexpr Op kOp = Op::kLoraReplace;
  LoraRows rows;
  const LoraWhole* matrices;  // [max_adapters] at intervals of `adapter_stride`
  const void* x;              // [max_rows, k] of dtype, or null beside token_ids
  const int32_t* token_ids;   // [max_rows] or null
  float* y;                   // [max_rows, n]
  int32_t adapter_stride;
  int32_t k;
  int32_t n;
  int32_t max_rows;
  int32_t max_adapters;
  DType dtype;  // of M: kF32 or kBF16
  float scale = 1;
};

void lora_replace(Queue& queue, const LoraReplaceArgs& args);

}  // namespace foretoken
