#pragma once
#include <cstdint>

#include "kernels/draft/draft_tensors.h"

namespace foretoken::cpu {

// The rows of a draft pass while they are laid out, in order.
class DraftPass {
 public:
  DraftPass(const DraftTensors& tensors, const BatchState& batch, int max_rows)
      : tensors_(tensors), batch_(batch), max_rows_(max_rows) {}

  int num_rows() const { return num_rows_; }
  int rows_left() const { return max_rows_ - num_rows_; }
  // The row of a slot's entry at `position`, paired with the state that lies at `source`, behind
  // the position `seen`.
  void add_row(int32_t slot, int32_t position, int32_t id, int32_t source, int32_t seen = 0);
  // The row added last wants logits.
  void want_logits();
  // Sets the counts and makes padding of the rows left.
  void finish();

 private:
  const DraftTensors& tensors_;
  const BatchState& batch_;
  int max_rows_;
  int num_rows_ = 0;
  int num_logits_rows_ = 0;
};

}  // namespace foretoken::cpu
