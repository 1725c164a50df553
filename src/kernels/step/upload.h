#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 1. Reads ring entry (*step mod kStepRingSize) and applies it:
//  - copies header and spans to `plan` (device),
//  - for each SlotInit: params and lists; state = {len, computed, not finished, no
//    drafts, draft_computed entries of its drafter},
//  - for each BlockUpdate: block_tables[slot, index] = block; when epoch > 0 the page header
//    becomes {parent = block_tables[slot, index - 1] or -1, parent's epoch, epoch, count 0,
//    draft counts 0};
//    a windowed one sets window_tables[slot, index] and nothing else,
//  - for each span with new ids: writes them to the token pages from write_position on and raises
//    the page headers' counts.
// In this order, since each part reads what the one before wrote. Only the live parts of the entry
// are read. An entry of another step, or with a part that leaves the plan or the slots' memory
// (plan_check.h), is the queue's error and nothing of it is applied. Ids beyond the vocabulary and
// blocks beyond the pool never come from the host; it checks.
// With only_spans, of an entry that was applied before: its header and spans go to `plan` again,
// and that is all.
struct UploadArgs {
  static constexpr Op kOp = Op::kUpload;
  const uint64_t* step;  // device step counter
  const char* ring;      // kStepRingSize entries in pinned memory
  int64_t entry_bytes;   // distance between entries
  void* plan;            // device copy (header and spans are valid after this op)
  PlanLimits limits;
  BatchState batch;
  int32_t only_spans = 0;
  StepStamps* stamps = nullptr;  // kStepRingSize entries in pinned memory: gets begin_ns; or null
};

void upload(Queue& queue, const UploadArgs& args);

}  // namespace foretoken
