#include "model/layer/lora.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/gemm/gemm.h"

namespace foretoken {
namespace {

LoraExpandArgs expand_args(const AdaptedRows& rows) {
  LoraExpandArgs args{.rows = rows.pass.rows,
                      .matrices = rows.product.matrices,
                      .t = rows.pass.t,
                      .y = nullptr,
                      .weight = nullptr,
                      .adapter_stride = rows.pass.adapter_stride,
                      .num_parts = rows.product.num_parts,
                      .max_rank = rows.pass.max_rank,
                      .part_cols = {},
                      .y_stride = 0,
                      .max_rows = rows.max_rows,
                      .max_adapters = rows.pass.max_adapters,
                      .dtype = rows.dtype,
                      .k = rows.inputs};
  std::copy_n(rows.product.part_cols, kMaxLoraParts, args.part_cols);
  return args;
}

LoraShrinkArgs shrink_args(const AdaptedRows& rows) {
  return {.rows = rows.pass.rows,
          .matrices = rows.product.matrices,
          .x = nullptr,
          .t = rows.pass.t,
          .adapter_stride = rows.pass.adapter_stride,
          .num_parts = rows.product.num_parts,
          .max_rank = rows.pass.max_rank,
          .k = rows.inputs,
          .max_rows = rows.max_rows,
          .max_adapters = rows.pass.max_adapters,
          .dtype = rows.dtype};
}

}  // namespace

void shrink_lora(Queue& queue, const AdaptedRows& rows, const void* x) {
  if (rows.product.matrices == nullptr) return;
  LoraShrinkArgs args = shrink_args(rows);
  args.x = x;
  args.beside_product = 1;
  lora_shrink(queue, args);
}

void shrink_lora_apart(Queue& queue, const AdaptedRows& rows, const void* x) {
  if (rows.product.matrices == nullptr) return;
  LoraShrinkArgs args = shrink_args(rows);
  args.x = x;
  lora_shrink(queue, args);
}

void look_up_lora(Queue& queue, const AdaptedRows& rows, const int32_t* token_ids,
                  int32_t num_ids) {
  FT_CHECK(rows.inputs == 1);
  if (rows.product.matrices == nullptr) return;
  LoraShrinkArgs args = shrink_args(rows);
  args.token_ids = token_ids;
  args.k = num_ids;
  lora_shrink(queue, args);
}

void expand_lora(Queue& queue, const AdaptedRows& rows, const AdaptedProduct& to) {
  if (rows.product.matrices == nullptr) return;
  LoraExpandArgs args = expand_args(rows);
  args.y = to.y;
  args.y_stride = to.y_stride;
  args.bias = to.bias;
  lora_expand(queue, args);
}

void expand_gates(Queue& queue, const AdaptedRows& rows, const AdaptedGates& to) {
  LoraExpandArgs args = expand_args(rows);
  args.y = rows.pass.raw_gates;
  args.y_stride = raw_gates_stride(2 * args.part_cols[0]);
  args.weight = to.weight;
  args.gated = to.gated;
  args.counts = to.counts;
  args.bias = to.bias;
  args.activation = to.activation;
  lora_expand(queue, args);
}

}  // namespace foretoken
