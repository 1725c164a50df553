#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "device/arena.h"
#include "device/queue.h"
#include "kernels/step_types.h"

namespace foretoken {

// Token ids of made-up sequences, drawn from the whole vocabulary with a fixed seed: rows differ as
// those of a text do. Equal rows would all go to the same experts of a mixture, whose steps would
// seem to cost the same for any number of rows.
class MadeUpIds {
 public:
  // Takes pinned memory, which outlives what is enqueued, and draws.
  Status draw(Arena& pinned, int32_t vocab_size);

  // What was drawn at `place`; places wrap around.
  int32_t at(size_t place) const { return ids_[place % kCount]; }
  // Enqueues the ids of these blocks' token pages, which all differ from one another as long as
  // there are no more than kCount.
  void copy_to_pages(Queue& queue, const BatchState& batch, std::span<const int32_t> blocks) const;
  // Drafts of the sequence at `index` of a step, into `state`.
  void write_drafts(size_t index, SlotState& state) const;

  static constexpr size_t kCount = size_t{1} << 16;

 private:
  int32_t* ids_ = nullptr;  // [kCount]
};

}  // namespace foretoken
