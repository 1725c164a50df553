#pragma once
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "kernels/gemm/gemm.h"
#include "kernels/rows/round_rows.h"
#include "model/layer/layer_rows.h"
#include "model/layer/lora.h"
#include "model/layer/rank_rows.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

// Which tensors of a checkpoint a matrix was made of: parts that are stacked (their names without
// ".weight"), and the columns of them that a rank has.
struct LinearSource {
  std::vector<TensorPart> parts;
  ColumnRange columns{};
  WeightOrder order = WeightOrder::kPlain;
};

// A matrix [outputs, inputs] and its bias in device memory.
struct Linear {
  PackedWeight weight;
  const float* bias = nullptr;  // [outputs] or null
  int32_t outputs = 0;
  int32_t inputs = 0;
  bool rounds_to_int8 = false;  // what it multiplies, each row (RowRounding::kInt8)
  LinearSource source;
  bool is_summed = false;  // over the ranks: it multiplies a rank's part of the row
  LoraProduct lora;        // what adapters change of it
};

// Where a product goes: rows of floats, which it replaces or is added to.
struct Sum {
  float* rows;
  bool adds = false;
};

// Rounds the rows of x, `columns` wide and `per_row` of each token, for a weight that takes them
// so.
inline const void* rounded_rows(const LayerRows& rows, const void* x, void* rounded,
                                int32_t columns, DType dtype, int32_t per_row = 1,
                                float scale = 0) {
  FT_CHECK(rounded != nullptr);
  round_rows(rows.queue, {.counts = rows.counts,
                          .x = x,
                          .rounded = rounded,
                          .row_kind = RowKind::kToken,
                          .row_offset = 0,
                          .max_rows = rows.max_rows * per_row,
                          .columns = columns,
                          .dtype = dtype,
                          .per_row = per_row,
                          .scale = scale});
  return rounded;
}

// The same of whole rows to eight bits, of which this rank may have a part.
inline const void* int8_rows(const LayerRows& rows, const void* x, const Linear& linear,
                             DType dtype) {
  FT_CHECK(rows.rounded != nullptr);
  RoundRowsArgs args{.counts = rows.counts,
                     .x = x,
                     .rounded = rows.rounded,
                     .row_kind = RowKind::kToken,
                     .row_offset = 0,
                     .max_rows = rows.max_rows,
                     .columns = linear.inputs,
                     .dtype = dtype,
                     .rounding = RowRounding::kInt8};
  if (linear.is_summed && rows.ranks != nullptr) {
    tell_highest(rows, x, linear.inputs, dtype);
    args.highest = rows.ranks->entries;
    args.num_highest = rows.ranks->size;
    args.num_entries = rows.ranks->num_entries;
  }
  round_rows(rows.queue, args);
  return rows.rounded;
}

// x as a product reads it: enqueues its rounding where the matrix takes rounded rows.
inline const void* x_of(const LayerRows& rows, const void* x, const Linear& linear, DType dtype) {
  if (linear.rounds_to_int8) {
    return int8_rows(rows, x, linear, dtype);
  }
  if (!linear.weight.takes_rounded()) return x;
  return rounded_rows(rows, x, rows.rounded, linear.inputs, dtype, 1, linear.weight.input_scale());
}

// What most products of a layer have in common. Enqueues what x_of does.
inline GemmArgs product_of(const LayerRows& rows, const void* x, const Linear& linear, void* y,
                           DType dtype) {
  return {.counts = rows.counts,
          .x = x_of(rows, x, linear, dtype),
          .weight = linear.weight.get(),
          .y = y,
          .bias = linear.bias,
          .row_kind = RowKind::kToken,
          .row_offset = 0,
          .max_rows = rows.max_rows,
          .n = linear.outputs,
          .k = linear.inputs,
          .dtype = dtype,
          .out_dtype = DType::kF32};
}

// Of a product of the rows of a pass with adapters.
inline AdaptedRows adapted_rows(const LayerRows& rows, const Linear& linear, DType dtype) {
  return {*rows.lora, linear.lora, linear.inputs, rows.max_rows, dtype};
}

// Enqueues y = x weight^T + bias, or adds it: y [max_rows, outputs], x [max_rows, inputs] of dtype;
// for rows with adapters also what those add. frees_next: as of GemmArgs.
inline void multiply(const LayerRows& rows, const void* x, const Linear& linear, Sum y, DType dtype,
                     bool frees_next = false) {
  GemmArgs product = product_of(rows, x, linear, y.rows, dtype);
  product.add = y.adds ? 1 : 0;
  product.frees_next = frees_next ? 1 : 0;
  if (rows.lora == nullptr) return gemm(rows.queue, product);
  const AdaptedRows adapted = adapted_rows(rows, linear, dtype);
  if (linear.lora.matrices != nullptr) product.frees_next = 1;
  gemm(rows.queue, product);
  shrink_lora(rows.queue, adapted, x);
  expand_lora(rows.queue, adapted, {y.rows, linear.outputs, linear.bias});
}

}  // namespace foretoken
