#pragma once
#include <cstdint>

#include "device/queue.h"
#include "kernels/step_types.h"

namespace foretoken {

// What a drafter may read: the step's plan and the state of the batch after its commit.
struct DraftStep {
  const void* plan = nullptr;
  PlanLimits limits{};
  BatchState batch{};
  StepTensors tensors{};
};

// Proposes tokens for the next step. It knows nothing of asynchrony, graphs or ranks: it enqueues
// ops that read device state and write SlotState::drafts and num_drafts. Engine thread.
class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual const char* name() const = 0;
  // Upper bound on the drafts of one sequence and step.
  virtual int max_drafts() const = 0;
  // Device memory of its own, beyond KV cache, token pages and block tables.
  virtual int64_t memory_bytes() const = 0;
  // Enqueues the ops that draft for every span of the step. Called while a graph is captured too.
  virtual void propose(Queue& queue, const DraftStep& step) = 0;
};

}  // namespace foretoken
