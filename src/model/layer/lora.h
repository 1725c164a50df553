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
  float* t = nullptr;          // [max_rows, kMaxLoraParts, max_rank]
  float* raw_gates = nullptr;  // [max_rows, raw_gates_stride of the widest] floats
  int32_t adapter_stride = 0;
  int32_t max_rank = 0;
  int32_t max_adapters = 0;
  bool feed_forward = false;  // some adapter changes a layer's feed-forward part
};

// A product that adapters are added to: y [max_rows, y_stride] holds it already.
struct AdaptedProduct {
  const void* x;  // [max_rows, inputs] of dtype
  float* y;
  int32_t inputs;
  int32_t y_stride;
  DType dtype;
  const void* gate_up = nullptr;  // LoraExpandArgs::weight
};

// Enqueues y += scale * b (a x) for the rows that have adapters; nothing where none changes it.
void add_lora(Queue& queue, const LoraPass& pass, const LoraProduct& product,
              const AdaptedProduct& to, int32_t max_rows);

}  // namespace foretoken
