#pragma once
#include <memory>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "kernels/step_types.h"

namespace foretoken {

struct StepMemoryConfig {
  int num_slots = 0;          // branches included
  int num_branches = 0;       // the last ones of them
  int branch_blocks = 0;      // of each, behind num_blocks
  int num_window_blocks = 0;  // of the windowed group, where there are branches
  int num_blocks = 0;         // the null block included
  int block_size = 0;
  int max_blocks = 0;  // of the longest sequence
  int vocab_size = 0;
  int max_prediction = 0;  // ids of a slot's prediction; 0: no drafter looks them up
  int max_flex_words = 0;  // of a request's own expressions; 0: attention asks for none
  bool windowed = false;   // the model has a windowed KV group
  int max_rows = 0;
  int max_logits_rows = 0;
  int num_lanes = 1;  // of rows, each with room for max_rows of them
  PlanLimits limits{};
  ResultLimits result_limits{};
};

// The device's memory for steps: batch state, the tensors of one step, plan and result with their
// rings in pinned memory, the step counter and the publish word. Taken at start-up.
class StepMemory {
 public:
  static Result<std::unique_ptr<StepMemory>> make(Device& device, const StepMemoryConfig& config);

  // Takes nothing: every pointer is null, and device_bytes is what `make` would take.
  static std::unique_ptr<StepMemory> count(const StepMemoryConfig& config);

  const PlanLimits& limits() const { return config_.limits; }
  const ResultLimits& result_limits() const { return config_.result_limits; }
  BatchState batch{};
  StepTensors tensors{};
  void* plan = nullptr;               // device
  void* result = nullptr;             // device
  uint64_t* step_counter = nullptr;   // device: published steps
  uint64_t* begun_counter = nullptr;  // device: steps whose rows were told to the next stage
  char* plan_ring = nullptr;          // pinned, kStepRingSize entries
  char* result_ring = nullptr;        // pinned, kStepRingSize entries
  int64_t plan_entry_bytes = 0;
  int64_t result_entry_bytes = 0;
  Event published;               // number of published steps
  StepStamps* stamps = nullptr;  // pinned, kStepRingSize entries

  // Enqueues what makes the device state as it was at the start: no sequences, empty pages, step 0.
  void reset(Queue& queue);

  int64_t device_bytes() const { return static_cast<int64_t>(arena_.bytes_taken()); }
  int64_t token_page_bytes() const;
  int64_t block_table_bytes() const;  // of both groups

 private:
  // A null device: memory is only counted.
  StepMemory(Device* device, const StepMemoryConfig& config)
      : config_(config),
        arena_(device, MemoryKind::kDevice),
        pinned_(device, MemoryKind::kPinned) {}
  Status take_all();
  Status take_batch();
  Status take_lists();
  Status take_tensors();
  Status take_rings();

  const StepMemoryConfig config_;
  Arena arena_;
  Arena pinned_;
};

}  // namespace foretoken
