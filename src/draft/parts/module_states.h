#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "device/dtype.h"
#include "kernels/comm/context_exchange.h"
#include "kernels/draft/draft_tensors.h"
#include "kernels/step/move_blocks.h"

namespace foretoken {

// The outputs of a head's modules that later modules pair with (all modules but the last): module
// m + 1 pairs token i with what module m made of token i - 1.
//  - pages: of exact entries, at the KV slot of their position, beside the drafter's KV, so that
//    any entry of module m + 1 can be caught up at any time;
//  - rows: of the pass that ran last, for the pass after it.
class ModuleStates {
 public:
  // Pages keep this rank's part of the columns of `parts`, all of which the hidden size divides by.
  ModuleStates(Device& device, int32_t num_modules, int32_t hidden, DType page_dtype,
               const ContextRanks& parts = {});

  int64_t bytes_per_block(int32_t block_size) const;
  Status take_pages(int32_t num_blocks, int32_t block_size);
  // The pages of each module, once they are taken.
  std::vector<BlockPart> block_parts() const;
  Status take_rows(int32_t max_rows);
  int64_t row_bytes() const { return static_cast<int64_t>(row_arena_.bytes_taken()); }

  // Of module `module`, which is not the last one.
  const void* pages(int32_t module) const { return pages_.at(static_cast<size_t>(module)); }
  const float* rows(int32_t module) const { return rows_.at(static_cast<size_t>(module)); }
  DType page_dtype() const { return page_dtype_; }

  // Enqueues copies of `states` [max_rows, hidden], the module's output for the live token rows.
  void keep_page(Queue& queue, int32_t module, const float* states, const StepTensors& tensors,
                 int32_t max_rows) const;
  void keep_rows(Queue& queue, int32_t module, const float* states, const StepTensors& tensors,
                 int32_t max_rows) const;

 private:
  Device& device_;
  const int32_t num_kept_;
  const int32_t hidden_;
  const DType page_dtype_;
  const int32_t page_columns_;
  const int32_t first_column_;
  Arena page_arena_;
  Arena row_arena_;
  std::vector<void*> pages_;
  int64_t page_bytes_ = 0;  // of a module and block
  std::vector<float*> rows_;
};

}  // namespace foretoken
