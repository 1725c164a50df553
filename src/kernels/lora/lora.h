#pragma once
#include <foretoken/limits.h>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Low-rank adapters (Hu et al. 2021) beside the products of a model: y += scale * b (a x) for the
// rows whose slot has one. Rows of one adapter are handled together, and how many rows have which
// adapter is known to the device alone, so that one recording serves every mixture of them. The
// bits of a row of y depend on that row of x and its adapter alone.

inline constexpr int kMaxLoraParts = 3;   // products of the same x: queries, keys and values
inline constexpr int kLoraTileRows = 16;  // rows of one adapter that are handled together
inline constexpr int kLoraRankStep = 8;   // ranks are padded with zeros to a multiple

// What one adapter adds to one product; a row of a table in device memory.
struct LoraMatrix {
  const void* a = nullptr;  // [rank, k] of the type of x
  const void* b = nullptr;  // [rank, lora_stride(n)] of that type: column j holds what y[j] takes
  float scale = 0;
  int32_t rank = 0;  // a multiple of kLoraRankStep; 0: nothing is added
};

// Elements from one row of LoraMatrix::b to the next; columns from n on are zeros.
FT_HD inline int64_t lora_stride(int64_t n) { return (n + 7) / 8 * 8; }

// Rows [begin, begin + count) of LoraRows::rows have the same adapter.
struct LoraTile {
  int32_t adapter;  // from 0 on
  int32_t begin;
  int32_t count;  // 1 .. kLoraTileRows
};

// The rows of a step that have adapters; device memory.
struct LoraRows {
  int32_t* num_tiles = nullptr;
  LoraTile* tiles = nullptr;       // [max_lora_tiles], by adapter
  int32_t* rows = nullptr;         // [max_rows] token rows, those of an adapter in their order
  int32_t* row_adapter = nullptr;  // [max_rows] scratch
};

// Most tiles of so many rows.
FT_HD inline int32_t max_lora_tiles(int32_t max_rows, int32_t max_adapters) {
  const int32_t most = max_rows / kLoraTileRows + max_adapters;
  return most < max_rows ? most : max_rows;
}

// Finds the rows with adapters (SlotParams::adapter) and puts those of each together. Once a step,
// before the other two.
struct GroupLoraArgs {
  static constexpr Op kOp = Op::kGroupLora;
  const StepCounts* counts;
  const int32_t* row_slot;   // [max_rows]
  const SlotParams* params;  // of all slots
  LoraRows rows;
  int32_t max_rows;
  int32_t max_adapters;  // at most kMaxAdapters
};

// t = scale * a x for each row of `rows` and each of num_parts products of x, in float:
// t[i, part, j] for place i of LoraRows::rows and j below the rank.
struct LoraShrinkArgs {
  static constexpr Op kOp = Op::kLoraShrink;
  LoraRows rows;
  const LoraMatrix* matrices;  // [max_adapters] at intervals of `adapter_stride`, each num_parts
  const void* x;               // [max_rows, k] of dtype
  float* t;                    // [max_rows, num_parts, max_rank]
  int32_t adapter_stride;
  int32_t num_parts;
  int32_t max_rank;
  int32_t k;
  int32_t max_rows;
  int32_t max_adapters;
  DType dtype;  // kF32 or kBF16
};

// y += b t for each row of `rows`. The products lie side by side in a row of y, or, with a `weight`
// of gates and ups, as GemmArgs::kRawGates leaves them.
struct LoraExpandArgs {
  static constexpr Op kOp = Op::kLoraExpand;
  LoraRows rows;
  const LoraMatrix* matrices;
  const float* t;
  float* y;            // [max_rows, y_stride]
  const void* weight;  // handle of a weight packed by WeightOrder::kGateUp, or null
  int32_t adapter_stride;
  int32_t num_parts;
  int32_t max_rank;
  int32_t part_cols[kMaxLoraParts];  // of y, by product
  int32_t y_stride;
  int32_t max_rows;
  int32_t max_adapters;
  DType dtype;  // of LoraMatrix::b
};

void group_lora(Queue& queue, const GroupLoraArgs& args);
void lora_shrink(Queue& queue, const LoraShrinkArgs& args);
void lora_expand(Queue& queue, const LoraExpandArgs& args);

}  // namespace foretoken
