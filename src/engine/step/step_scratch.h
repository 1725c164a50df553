#pragma once
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "engine/request/host_processors.h"
#include "kernels/sampling/token_masks.h"

namespace foretoken {

struct StepScratchConfig {
  int vocab_size = 0;
  int logits_tile = 0;         // logits rows computed at once; 0: nothing is sampled or taken
  int max_processor_rows = 0;  // of those, how many pass logits processors at once; 0: none
  int max_rows = 0;            // token rows of the largest step
  int max_len = 0;             // of the longest sequence, drafts included
  int num_slots = 0;
  int num_row_tables = 1;  // arrays of step times
  int hidden_size = 0;
  bool with_logprobs = false;
  int max_mask_spans = 0;  // spans of a step that can have grammars; 0: none
  int mask_rows_each = 0;  // logits rows of such a span at most
};

// Memory between the ops of one step, taken at start-up and used by one step after the other.
class StepScratch {
 public:
  StepScratch(Device& device, const StepScratchConfig& config) : StepScratch(&device, config) {}
  // What `take` takes of the device's memory.
  static int64_t device_bytes(const StepScratchConfig& config);
  Status take();

  float* logits = nullptr;        // [logits_tile, vocab]
  float* raw = nullptr;           // the same before shaping; null without logprobs
  uint32_t* seen = nullptr;       // [logits_tile, 2, ceil(vocab / 32)]
  uint64_t* keys = nullptr;       // [logits_tile] of rows that ranks sample together
  float* accumulators = nullptr;  // [num_slots + 1, hidden] of pooling
  HostLogits host{};              // of max_processor_rows rows
  MaskExchange masks{};           // without max_mask_spans: null
  MaskTicket* mask_ticket = nullptr;
  int32_t* row_ns = nullptr;           // [num_row_tables, max_rows + 1] for choose_lengths
  int32_t* row_ns_host = nullptr;      // pinned, the same
  uint32_t* synthetic = nullptr;       // [kMaxDraftTokens] for commit
  uint32_t* synthetic_host = nullptr;  // pinned, the same

  // The call that runs the processors of `num_rows` exported rows; it stays valid.
  ProcessorCall* processor_call(int num_rows) { return &calls_[static_cast<size_t>(num_rows - 1)]; }
  int64_t num_bytes() const {
    return static_cast<int64_t>(rows_.bytes_taken() + arena_.bytes_taken() + pinned_.bytes_taken());
  }

 private:
  // A null device: memory is only counted.
  StepScratch(Device* device, const StepScratchConfig& config)
      : config_(config),
        rows_(device, MemoryRole::kBlocks),
        arena_(device, MemoryKind::kDevice),
        pinned_(device, MemoryKind::kPinned) {}
  Status take_rows();
  Status take_host();
  Status take_masks();
  Status take_tables();

  const StepScratchConfig config_;
  Arena rows_;  // of no use between steps
  Arena arena_;
  Arena pinned_;
  std::vector<ProcessorCall> calls_;  // by number of rows, from 1
};

}  // namespace foretoken
