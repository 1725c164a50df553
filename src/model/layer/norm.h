#pragma once
#include <cstdint>

#include "kernels/rows/rms_norm.h"
#include "model/layer/layer_rows.h"

namespace foretoken {

// A norm's weights in device memory, ready to multiply: an offset is already added.
struct Norm {
  const float* weight = nullptr;  // null: rows pass as they are
};

// Rows that a norm writes.
struct NormOutput {
  void* rows;
  DType dtype;
};

// What norms of hidden states have in common.
struct NormSize {
  int32_t hidden;
  float eps;
};

// Enqueues residual += delta (when given) and out = norm(residual), for the live token rows.
inline void norm_rows(const LayerRows& rows, float* residual, const float* delta, const Norm& norm,
                      const NormSize& size, NormOutput out) {
  rms_norm(rows.queue, {.counts = rows.counts,
                        .residual = residual,
                        .delta = delta,
                        .weight = norm.weight,
                        .out = out.rows,
                        .row_index = nullptr,
                        .row_offset = 0,
                        .max_rows = rows.max_rows,
                        .hidden = size.hidden,
                        .eps = size.eps,
                        .out_dtype = out.dtype});
}

}  // namespace foretoken
