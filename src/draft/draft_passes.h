#pragma once
#include <array>
#include <cstdint>

#include "base/check.h"
#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "draft/parts/drafter.h"
#include "kernels/draft/draft_next.h"
#include "kernels/draft/draft_rows.h"
#include "kernels/draft/draft_tensors.h"

namespace foretoken {

// What the passes of a drafter depend on.
struct PassRules {
  const int32_t* token_map = nullptr;  // as of DraftRowsArgs
  int32_t first_entry = 0;
  int32_t max_len = 0;
  bool keeps_written = false;
  bool last_only = false;   // as of DraftRowsArgs: it has no KV
  bool in_order = false;    // likewise: it keeps states
  bool tells_seen = false;  // rows have DraftTensors::seen
  bool branches = false;    // steps may have DraftShape::num_branches
};

// The rows of a drafter's passes: two sets of tensors, one of the pass that runs and one of the
// pass after it, in turns; and the loop over the passes of a step.
class DraftPasses {
 public:
  DraftPasses(Device& device, int32_t max_rows, int32_t max_spans);

  // Takes the tensors; once.
  Status take(const PassRules& rules);
  int64_t bytes() const { return static_cast<int64_t>(arena_.bytes_taken()); }
  // Rows of the largest pass, and of the logits of any.
  int32_t max_rows() const { return max_rows_; }
  int32_t max_logits_rows() const { return max_spans_; }

  // Enqueues the passes of a step. run(pass, tensors, max_rows, max_logits_rows) enqueues what one
  // pass computes; with max_logits_rows > 0 it also writes the drafted target ids to
  // tensors.rows.sampled.
  template <class Run>
  void enqueue(Queue& queue, const DraftStep& step, const DraftShape& shape, Run&& run) const {
    if (shape.max_catch_up_rows == 0) return;
    const int later_rows = shape.max_spans + shape.num_branches;
    FT_CHECK(shape.max_catch_up_rows <= max_rows_ && later_rows <= max_spans_);
    FT_CHECK(shape.num_branches == 0 || rules_.branches);
    enqueue_first(queue, step, shape);
    if (shape.num_draft_tokens > 0) export_masked(queue, step);
    run(0, tensors_[0], shape.max_catch_up_rows, shape.num_draft_tokens > 0 ? shape.max_spans : 0);
    for (int pass = 0; pass < shape.num_draft_tokens; ++pass) {
      if (pass > 0) {
        export_masked(queue, step);
        run(pass, of(pass), later_rows, later_rows);
      }
      if (shape.num_branches > 0) enqueue_branches(queue, step, shape, pass);
      enqueue_next(queue, step, shape, pass);
    }
  }

 private:
  const DraftTensors& of(int pass) const { return tensors_[static_cast<size_t>(pass % 2)]; }
  // Tells the host the drafts so far, so that it computes the masks of the next ones meanwhile.
  static void export_masked(Queue& queue, const DraftStep& step);
  void enqueue_first(Queue& queue, const DraftStep& step, const DraftShape& shape) const;
  void enqueue_branches(Queue& queue, const DraftStep& step, const DraftShape& shape,
                        int pass) const;
  void enqueue_next(Queue& queue, const DraftStep& step, const DraftShape& shape, int pass) const;
  Status take_tensors(DraftTensors* tensors);

  const int32_t max_rows_;
  const int32_t max_spans_;
  Arena arena_;
  PassRules rules_;
  std::array<DraftTensors, 2> tensors_{};
};

}  // namespace foretoken
