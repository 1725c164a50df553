#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Step part 8: copies the live part of the result to ring entry (*step mod kStepRingSize), adds one
// to the step counter and stores its new value in `word` with release order (system scope).
struct PublishArgs {
  static constexpr Op kOp = Op::kPublish;
  uint64_t* step;      // device step counter
  const void* result;  // device
  ResultLimits limits;
  int32_t with_logprobs;  // 1: the step filled rows and top
  int32_t with_pooled;    // 1: the step filled pooled
  char* ring;             // kStepRingSize entries in pinned memory
  int64_t entry_bytes;
  void* word;  // Event::word: the number of published steps
};

void publish(Queue& queue, const PublishArgs& args);

}  // namespace foretoken
