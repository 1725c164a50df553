#pragma once
#include <cstdint>

#include "kernels/linear/linear_shape.h"
#include "kernels/step_types.h"

namespace foretoken {

// What a mixer keeps of each sequence that is no entry of a position: the inputs that a causal
// convolution still reads, and the state of a linear attention (kernels/linear). All sizes are of a
// rank's part.
struct StateSpec {
  int32_t conv_channels = 0;  // 0: there is no convolution
  int32_t conv_width = 0;
  LinearShape linear = {};  // without heads: there is no linear attention

  bool exists() const { return conv_channels > 0 || linear.value_heads > 0; }
};

// How many sequences a model with such layers has at once, and drafts of each in a step. These and
// the last known token before them may come again: masks may be late, drafts are rejected.
struct StateUse {
  int32_t num_slots = 0;
  int32_t max_draft_tokens = 0;

  int32_t rows_to_take_back() const { return max_draft_tokens + 1; }
};

// The same in device memory, for all slots, of one layer. A sequence's part is begun anew by the
// rows at its position 0, so that nothing is cleared when a slot changes hands, and drafts that are
// rejected leave nothing behind: that is for the ops to see to.
struct LayerState {
  float* history = nullptr;  // as of CausalConvArgs
  int32_t history_rows = 0;
  float* states = nullptr;  // as of LinearAttentionArgs, and so are the next
  int32_t* committed = nullptr;
  float* pending = nullptr;
  int32_t pending_rows = 0;
  const SlotState* slots = nullptr;
};

}  // namespace foretoken
