#include "draft/parts/plain_slot.h"

#include <cstddef>
#include <memory>

#include "base/check.h"

namespace foretoken {

// All of it is zeros.
Status PlainSlot::take(Device& device, Arena& arena, int32_t max_rows) {
  const char* what = "a drafter's rows";
  const auto rows = static_cast<size_t>(max_rows);
  FT_ASSIGN_OR_RETURN(params_, arena.take_array<SlotParams>(1, what));
  FT_ASSIGN_OR_RETURN(slot_, arena.take_array<SlotState>(1, what));
  FT_ASSIGN_OR_RETURN(rows_, arena.take_array<int32_t>(rows, what));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Queue> queue, device.make_queue());
  queue->fill(params_, 0, sizeof(SlotParams));
  queue->fill(slot_, 0, sizeof(SlotState));
  queue->fill(rows_, 0, rows * sizeof(int32_t));
  return queue->drain();
}

void PlainSlot::put(StepTensors* rows, BatchState* batch) const {
  FT_CHECK(rows_ != nullptr);
  rows->row_slot = rows_;
  batch->params = params_;
  batch->slots = slot_;
}

}  // namespace foretoken
