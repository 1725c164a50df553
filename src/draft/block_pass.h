#pragma once
#include <cstdint>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "draft/parts/drafter.h"
#include "kernels/draft/draft_block.h"
#include "kernels/draft/draft_tensors.h"

namespace foretoken {

// The rows of a pass that drafts several tokens of each sequence at once, and what becomes of the
// ids that it draws: see kernels/draft/draft_block.h and draft_take.h.
class BlockPass {
 public:
  struct Rules {
    int32_t mask_id = 0;
    int32_t rows = 0;              // of a block: max_draft_tokens, or one more
    int32_t max_draft_tokens = 0;  // those of the last rows
    int32_t first_entry = 1;       // as of DraftRowsArgs
    int32_t mask_source = 0;       // as of DraftBlockArgs
  };
  BlockPass(Device& device, int32_t max_spans, const Rules& rules);

  // Takes the tensors; once.
  Status take();
  int64_t bytes() const { return static_cast<int64_t>(arena_.bytes_taken()); }
  int32_t max_logits_rows() const { return max_spans_ * rules_.max_draft_tokens; }

  // Enqueues the rows behind the catch-up `known` and returns how many there are at most.
  int32_t lay_out(Queue& queue, const DraftStep& step, const DraftShape& shape,
                  const DraftTensors& known) const;
  const DraftTensors& tensors() const { return tensors_; }
  const int32_t* last_seen() const { return last_seen_; }
  // The rows as a sampler wants to see them, at the position before the one that each drafts.
  StepTensors drawn() const;
  // Enqueues taking the ids of drawn().sampled.
  void take_drafts(Queue& queue, const DraftStep& step, int32_t max_logits_rows) const;

 private:
  const int32_t max_spans_;
  const Rules rules_;
  Arena arena_;
  DraftTensors tensors_{};
  int32_t* last_seen_ = nullptr;
  int32_t* before_ = nullptr;
};

}  // namespace foretoken
