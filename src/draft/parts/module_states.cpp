#include "draft/parts/module_states.h"

#include "device/small_front.h"
#include "kernels/rows/move_rows.h"

namespace foretoken {
namespace {

MoveRowsArgs copy_of(const float* states, const StepTensors& tensors, int32_t max_rows,
                     int32_t hidden) {
  return {.counts = tensors.counts,
          .in = states,
          .out = nullptr,
          .from = nullptr,
          .to = nullptr,
          .row_kind = RowKind::kToken,
          .max_rows = max_rows,
          .width = hidden,
          .out_stride = hidden,
          .out_offset = 0,
          .in_dtype = DType::kF32,
          .out_dtype = DType::kF32};
}

}  // namespace

ModuleStates::ModuleStates(Device& device, int32_t num_modules, int32_t hidden, DType page_dtype,
                           const ContextRanks& parts)
    : device_(device),
      num_kept_(num_modules - 1),
      hidden_(hidden),
      page_dtype_(page_dtype),
      page_columns_(hidden / parts.size),
      first_column_(page_columns_ * parts.rank),
      page_arena_(device, MemoryKind::kDevice),
      row_arena_(device, MemoryKind::kDevice) {}

int64_t ModuleStates::bytes_per_block(int32_t block_size) const {
  return int64_t{num_kept_} * block_size * page_columns_ *
         static_cast<int64_t>(dtype_size(page_dtype_));
}

Status ModuleStates::take_pages(int32_t num_blocks, int32_t block_size) {
  page_bytes_ = int64_t{block_size} * page_columns_ * static_cast<int64_t>(dtype_size(page_dtype_));
  const size_t bytes = static_cast<size_t>(num_blocks) * static_cast<size_t>(page_bytes_);
  for (int32_t module = 0; module < num_kept_; ++module) {
    FT_ASSIGN_OR_RETURN(void* pages, page_arena_.take(bytes, "the states of MTP modules"));
    prefer_small_front(device_, pages, bytes);
    pages_.push_back(pages);
  }
  return {};
}

std::vector<BlockPart> ModuleStates::block_parts() const {
  std::vector<BlockPart> parts;
  for (void* pages : pages_) parts.push_back({static_cast<std::byte*>(pages), page_bytes_});
  return parts;
}

Status ModuleStates::take_rows(int32_t max_rows) {
  const size_t count = static_cast<size_t>(max_rows) * static_cast<size_t>(hidden_);
  for (int32_t module = 0; module < num_kept_; ++module) {
    FT_ASSIGN_OR_RETURN(float* rows,
                        row_arena_.take_array<float>(count, "the states of MTP modules"));
    rows_.push_back(rows);
  }
  return {};
}

void ModuleStates::keep_page(Queue& queue, int32_t module, const float* states,
                             const StepTensors& tensors, int32_t max_rows) const {
  MoveRowsArgs args = copy_of(states + first_column_, tensors, max_rows, page_columns_);
  args.in_stride = hidden_;
  args.out = pages_.at(static_cast<size_t>(module));
  args.to = tensors.kv_slot;
  args.out_dtype = page_dtype_;
  move_rows(queue, args);
}

void ModuleStates::keep_rows(Queue& queue, int32_t module, const float* states,
                             const StepTensors& tensors, int32_t max_rows) const {
  MoveRowsArgs args = copy_of(states, tensors, max_rows, hidden_);
  args.out = rows_.at(static_cast<size_t>(module));
  move_rows(queue, args);
}

}  // namespace foretoken
