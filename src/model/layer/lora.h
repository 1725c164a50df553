#pragma once
#include <cstdint>

#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/lora/lora.h"

namespace foretoken {

// Where adapters change a linear layer: the table of their matrices for it, and the parts of its
// outputs that have adapters of their own.
struct LoraProduct {
  const LoraMatrix* matrices = nullptr;  // as of LoraShrinkArgs; null: no adapter changes it
  int32_t num_parts = 0;
  int32_t part_cols[kMaxLoraParts] = {};
};

// The adapters of the rows of a forward pass, some of which have one; in device memory.
struct LoraPass {
  LoraRows rows;
  float* t = nullptr;          // LoraShrinkArgs::t, enough for each product
  float* raw_gates = nullptr;  // [max_rows, raw_gates_stride of the widest] floats
  int32_t adapter_stride = 0;
  int32_t max_rank = 0;
  int32_t max_adapters = 0;
  bool feed_forward = false;  // some adapter changes a layer's feed-forward part
};

// The rows of a product that adapters are added to.
struct AdaptedRows {
  const LoraPass& pass;
  const LoraProduct& product;
  int32_t inputs;
  int32_t max_rows;
  DType dtype;
};

// Enqueues t = scale * a x for the rows that have adapters, of x [max_rows, inputs] of dtype, right
// behind the product of x with GemmArgs::frees_next; nothing where no adapter changes it.
void shrink_lora(Queue& queue, const AdaptedRows& rows, const void* x);
// The same behind any op.
void shrink_lora_apart(Queue& queue, const AdaptedRows& rows, const void* x);

// The same where x is a one at the row's id, of token_ids [max_rows]; `rows.inputs` is 1.
void look_up_lora(Queue& queue, const AdaptedRows& rows, const int32_t* token_ids, int32_t num_ids);

// What b t is added to: y [max_rows, y_stride] of the product, and the bias in it.
struct AdaptedProduct {
  float* y;
  int32_t y_stride;
  const float* bias = nullptr;
};

// Enqueues y += b t behind shrink_lora.
void expand_lora(Queue& queue, const AdaptedRows& rows, const AdaptedProduct& to);

// The same with gates and ups as GemmArgs::kRawGates leaves them in LoraPass::raw_gates, followed
// by what meets of them.
struct AdaptedGates {
  const StepCounts* counts;
  const void* weight;
  const float* bias;  // [gate | up] or null
  void* gated;        // [max_rows, outputs / 2] of dtype
  Activation activation;
};
void expand_gates(Queue& queue, const AdaptedRows& rows, const AdaptedGates& to);

}  // namespace foretoken
