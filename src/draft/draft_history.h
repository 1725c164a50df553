#pragma once
#include <cstdint>

#include "base/result.h"
#include "device/arena.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/step_types.h"
#include "model/block_head.h"

namespace foretoken {

// What the tokens before each draft of a block make of its row (Domino, Huang et al. 2026): a gated
// recurrent unit reads their embeddings one after the other, the last known token first, and keeps
// a state for each slot of the step; a matrix makes features of the row and that state.
class DraftHistory {
 public:
  // `gru` outlives this. `dtype`, "act" below, is the head's; no draft has more than `max_slots`
  // rows, and no slot a higher number.
  DraftHistory(const BlockHead::Gru& gru, int32_t max_slots, DType dtype);

  // Takes the tensors of `arena`; once.
  Status take(Arena& arena);

  // A draft's rows, in order, of which each is a slot's.
  struct Rows {
    const StepTensors& rows;  // counts, row_slot
    int32_t max_rows;
    const float* embedded;  // [max_rows, hidden] the tokens before
    const void* states;     // act, what the output matrix reads of the block's rows
    const int32_t* from;    // [max_rows] the row of `states`
    bool is_first;          // of the block: the state before is zero
  };
  // Enqueues a step of the unit and, where `features` is not null, [max_rows, rank] act of it.
  void step(Queue& queue, const Rows& draft, void* features) const;

 private:
  struct Source {
    const void* rows;     // [..., width] of `dtype`
    const int32_t* from;  // which of them; null: in order
    DType dtype;
    int32_t width;
  };
  struct Target {
    void* rows;  // [max_rows, stride] act
    int32_t stride, offset;
  };

  void carry(Queue& queue, const Rows& draft) const;
  void place(Queue& queue, const Rows& draft, const Source& source, const Target& target) const;
  void multiply(Queue& queue, const Rows& draft, const void* x, const Linear& linear,
                float* y) const;

  const BlockHead::Gru gru_;
  const int32_t max_slots_;
  const DType dtype_;
  const int32_t hidden_;
  const int32_t size_;
  void* input_ = nullptr;      // [max_slots, hidden] act
  float* of_input_ = nullptr;  // [max_slots, 3 size]
  float* of_state_ = nullptr;  // the same
  void* before_ = nullptr;     // [max_slots, size] act: the states before
  float* states_ = nullptr;    // [max_slots, size] by slot
  void* joined_ = nullptr;     // [max_slots, hidden and size] act: rows and states
  float* products_ = nullptr;  // [max_slots, rank] of them
};

}  // namespace foretoken
