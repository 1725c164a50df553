#pragma once
#include <cstdint>

#include "kernels/rows/rms_norm.h"
#include "model/config/architecture.h"
#include "model/layer/layer_rows.h"

namespace foretoken {

// A norm's weights in device memory, ready to multiply: an offset is already added.
struct Norm {
  const float* weight = nullptr;  // null: rows pass as they are
  const float* bias = nullptr;
  NormKind kind = NormKind::kRms;
  float eps = 0;  // its own; 0: that of NormSize

  // A norm that ops which know root mean squares alone can do.
  bool is_rms() const { return weight != nullptr && kind == NormKind::kRms; }
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
  float delta_scale = 1;  // of what is added
};

// Of the live token rows: residual += delta (when given), out = norm(residual).
inline RmsNormArgs norm_args(const StepCounts* counts, float* residual, const float* delta,
                             const Norm& norm, const NormSize& size, NormOutput out) {
  return {.counts = counts,
          .residual = residual,
          .delta = delta,
          .weight = norm.weight,
          .out = out.rows,
          .row_index = nullptr,
          .row_offset = 0,
          .max_rows = 0,
          .hidden = size.hidden,
          .eps = norm.eps > 0 ? norm.eps : size.eps,
          .out_dtype = out.dtype,
          .bias = norm.bias,
          .centred = norm.kind == NormKind::kLayer ? 1 : 0,
          .delta_scale = size.delta_scale};
}

// Enqueues that.
inline void norm_rows(const LayerRows& rows, float* residual, const float* delta, const Norm& norm,
                      const NormSize& size, NormOutput out) {
  RmsNormArgs args = norm_args(rows.counts, residual, delta, norm, size, out);
  args.max_rows = rows.max_rows;
  rms_norm(rows.queue, args);
}

}  // namespace foretoken
