#include "model/layer/lora.h"

#include <algorithm>

namespace foretoken {

void add_lora(Queue& queue, const LoraPass& pass, const LoraProduct& product,
              const AdaptedProduct& to, int32_t max_rows) {
  if (product.matrices == nullptr) return;
  lora_shrink(queue, {.rows = pass.rows,
                      .matrices = product.matrices,
                      .x = to.x,
                      .t = pass.t,
                      .adapter_stride = pass.adapter_stride,
                      .num_parts = product.num_parts,
                      .max_rank = pass.max_rank,
                      .k = to.inputs,
                      .max_rows = max_rows,
                      .max_adapters = pass.max_adapters,
                      .dtype = to.dtype});
  LoraExpandArgs expand{.rows = pass.rows,
                        .matrices = product.matrices,
                        .t = pass.t,
                        .y = to.y,
                        .weight = to.gate_up,
                        .adapter_stride = pass.adapter_stride,
                        .num_parts = product.num_parts,
                        .max_rank = pass.max_rank,
                        .part_cols = {},
                        .y_stride = to.y_stride,
                        .max_rows = max_rows,
                        .max_adapters = pass.max_adapters,
                        .dtype = to.dtype};
  std::copy_n(product.part_cols, kMaxLoraParts, expand.part_cols);
  lora_expand(queue, expand);
}

}  // namespace foretoken
