#pragma once
#include <foretoken/limits.h>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/activation.h"
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
inline constexpr int kLoraSplitK = 1024;  // inputs whose products may be summed apart

// What one adapter adds to one product; a row of a table in device memory.
struct LoraMatrix {
  const void* a = nullptr;  // [rank, k] of the type of x; of a look-up [ids, rank]
  const void* b = nullptr;  // [rank, lora_stride(n)] of that type: column j holds what y[j] takes
  float scale = 0;
  int32_t rank = 0;  // a multiple of kLoraRankStep; 0: nothing is added
  // [n], what y is multiplied by, with what is added and without its bias (DoRA); null: by one.
  const float* factors = nullptr;
};

// Elements from one row of LoraMatrix::b to the next; columns from n on are zeros.
FT_HD inline int64_t lora_stride(int64_t n) { return (n + 7) / 8 * 8; }

// Sums of a product of k inputs: added in their order they are the product.
FT_HD inline int32_t lora_splits(int32_t k) { return (k + kLoraSplitK - 1) / kLoraSplitK; }

// Rows [begin, begin + count) of LoraRows::rows have the same adapter.
struct LoraTile {
  int32_t adapter;  // from 0 on; -1: they have none
  int32_t begin;
  int32_t count;  // 1 .. kLoraTileRows
};

// The rows of a step, those that have adapters first; device memory.
struct LoraRows {
  int32_t* num_tiles = nullptr;    // [2] of rows with adapters, of all rows
  LoraTile* tiles = nullptr;       // [max_lora_tiles], by adapter
  int32_t* rows = nullptr;         // [max_rows] token rows, those of an adapter in their order
  int32_t* row_adapter = nullptr;  // [max_rows] scratch
};

// Most tiles of so many rows, of which some may have no adapter.
FT_HD inline int32_t max_lora_tiles(int32_t max_rows, int32_t max_adapters) {
  const int32_t most = max_rows / kLoraTileRows + max_adapters + 1;
  return most < max_rows ? most : max_rows;
}

// Finds the rows with adapters (SlotParams::adapter) and puts those of each together, of the live
// token rows or, with a row_index, of the live logits rows from row_offset on, row i of which is
// token row row_index[row_offset + i]. Once for these rows, before the other two, and before other
// ops that stand before these.
struct GroupLoraArgs {
  static constexpr Op kOp = Op::kGroupLora;
  const StepCounts* counts;
  const int32_t* row_slot;   // of token rows
  const SlotParams* params;  // of all slots
  LoraRows rows;
  int32_t max_rows;
  int32_t max_adapters;                // at most kMaxAdapters
  const int32_t* row_index = nullptr;  // [logits rows] or null
  int32_t row_offset = 0;
  // Of token rows, before SlotParams::adapter_begin of which they have none; null: all may have.
  const int32_t* positions = nullptr;
};

// The adapter of a token row of a slot, from 0 on; negative: it has none.
FT_HD inline int32_t lora_of_row(const SlotParams& slot, const int32_t* positions, int32_t row) {
  return positions != nullptr && positions[row] < slot.adapter_begin ? -1 : slot.adapter - 1;
}

// t = scale * a x for each row with an adapter and each of num_parts products of x, in float: for
// place i of LoraRows::rows and j below the rank the sum of t[i, part, split, j], of which a device
// may leave out all but the first split. With `beside_product` the op before is a product of the
// same x with GemmArgs::frees_next. With `token_ids` a x is a look-up: of k ids row
// a[token_ids[row]], that of id 0 for an id outside of [0, k), and t is that of one input.
struct LoraShrinkArgs {
  static constexpr Op kOp = Op::kLoraShrink;
  LoraRows rows;
  const LoraMatrix* matrices;  // [max_adapters] at intervals of `adapter_stride`, each num_parts
  const void* x;               // [max_rows, k] of dtype, or null beside token_ids
  float* t;                    // [max_rows, num_parts, lora_splits(k), max_rank]
  int32_t adapter_stride;
  int32_t num_parts;
  int32_t max_rank;
  int32_t k;
  int32_t max_rows;
  int32_t max_adapters;
  DType dtype;  // kF32 or kBF16
  int32_t beside_product = 0;
  const int32_t* token_ids = nullptr;  // [max_rows] or null
};

// y += b t for each row with an adapter, or y = factors * (y - bias + b t) + bias. The products lie
// side by side in a row of y, or, with a `weight` of gates and ups, as GemmArgs::kRawGates leaves
// them. With `gated`, for all live rows: gated = activation(gate) * up of these sums, with the bits
// of gated_act; y then is used up.
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
  DType dtype;            // of LoraMatrix::b
  int32_t k = 0;          // LoraShrinkArgs::k of t
  void* gated = nullptr;  // [max_rows, part_cols[0]] of dtype, or null; only with a weight
  const StepCounts* counts = nullptr;  // with `gated`
  // [gate | up] or null, with `gated`, which adds it; without a weight what y has of it, as y is.
  const float* bias = nullptr;
  Activation activation = Activation::kSilu;
};

void group_lora(Queue& queue, const GroupLoraArgs& args);
void lora_shrink(Queue& queue, const LoraShrinkArgs& args);
void lora_expand(Queue& queue, const LoraExpandArgs& args);

}  // namespace foretoken
