#include "kernels/lora/lora.h"

#include "base/check.h"

namespace foretoken {
namespace {

void check_lora_rows(const LoraRows& rows, int32_t max_rows, int32_t max_adapters) {
  FT_CHECK(rows.num_tiles != nullptr && rows.tiles != nullptr && rows.rows != nullptr);
  FT_CHECK(max_rows > 0 && max_adapters > 0 && max_adapters <= kMaxAdapters);
}

void check_lora_parts(int32_t num_parts, int32_t max_rank, DType dtype) {
  FT_CHECK(num_parts > 0 && num_parts <= kMaxLoraParts);
  FT_CHECK(max_rank > 0 && max_rank % kLoraRankStep == 0);
  FT_CHECK(dtype == DType::kF32 || dtype == DType::kBF16);
}

}  // namespace

void group_lora(Queue& queue, const GroupLoraArgs& args) {
  FT_CHECK(args.counts != nullptr && args.row_slot != nullptr && args.params != nullptr);
  FT_CHECK(args.rows.row_adapter != nullptr && args.row_offset >= 0);
  FT_CHECK(args.row_index != nullptr || args.row_offset == 0);
  check_lora_rows(args.rows, args.max_rows, args.max_adapters);
  queue.launch(args);
}

void lora_shrink(Queue& queue, const LoraShrinkArgs& args) {
  FT_CHECK(args.matrices != nullptr && args.t != nullptr && args.k > 0);
  FT_CHECK((args.x != nullptr) != (args.token_ids != nullptr));
  FT_CHECK(args.beside_product == 0 || args.x != nullptr);
  check_lora_rows(args.rows, args.max_rows, args.max_adapters);
  check_lora_parts(args.num_parts, args.max_rank, args.dtype);
  queue.launch(args);
}

void lora_expand(Queue& queue, const LoraExpandArgs& args) {
  FT_CHECK(args.matrices != nullptr && args.t != nullptr && args.y != nullptr);
  check_lora_rows(args.rows, args.max_rows, args.max_adapters);
  check_lora_parts(args.num_parts, args.max_rank, args.dtype);
  for (int part = 0; part < args.num_parts; ++part) FT_CHECK(args.part_cols[part] > 0);
  FT_CHECK(args.k > 0 &&
           (args.gated == nullptr || (args.weight != nullptr && args.counts != nullptr)));
  FT_CHECK(args.bias == nullptr || (args.gated != nullptr) == (args.weight != nullptr));
  FT_CHECK(args.weight == nullptr ||
           (args.num_parts == 2 && args.part_cols[0] == args.part_cols[1]));
  queue.launch(args);
}

}  // namespace foretoken
