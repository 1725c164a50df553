#pragma once
#include <array>
#include <memory>
#include <vector>

#include "attention/kv_cache.h"
#include "base/result.h"
#include "device/device.h"
#include "draft/drafter.h"
#include "engine/step_memory.h"
#include "engine/step_scratch.h"
#include "model/model.h"
#include "sched/step_plan.h"

namespace foretoken {

// Faults planted by tests; all off in production.
struct TestHooks {
  bool reuse_ring_entry = false;  // a plan is also written over the entry of the step before
  int upload_delay_us = 0;        // the queue dawdles before it reads the entry
};

struct ModelRunnerConfig {
  int max_rows = 0;  // token rows of the largest step
  // Logits rows of the largest step whose prompts are not scored; the others want up to max_rows.
  int max_logits_rows = 0;
  int logits_tile = 0;         // logits rows computed at once
  int max_processor_rows = 0;  // of those through logits processors at once; 0: none
  int max_len = 0;             // of the longest sequence
  bool graphs = true;
  TestHooks hooks;
};

// Runs the nine parts of a step on the queue. Knows shapes, no policy: a plan already encoded in
// ring entry (step mod kStepRingSize), a bound on its rows and what its spans need beyond sampling
// are all it needs. Engine thread.
class ModelRunner {
 public:
  ModelRunner(Device& device, Queue& queue, Model& model, const KvCaches& kv_caches,
              Drafter* drafter, StepMemory& memory, const ModelRunnerConfig& config);

  // Takes the scratch and captures one graph of plain sampling per row bucket. The graphs of other
  // feature sets are captured when they are first needed.
  Status start();

  // The ring entry for a step; not in flight as long as at most kStepRingSize - 1 steps are.
  PlanView entry(uint64_t step) const;
  ResultView result(uint64_t step) const;

  // Enqueues step number `step` of at most `num_rows` token rows without waiting. `features`: the
  // StepFeature bits of its spans.
  void submit(uint64_t step, int num_rows, uint32_t features);

  int num_buckets() const { return static_cast<int>(buckets_.size()); }
  int64_t scratch_bytes() const { return scratch_.num_bytes(); }

 private:
  struct Bucket {
    int max_rows = 0;
    // By feature set; null: not captured yet, or the ops are enqueued one by one.
    std::array<std::unique_ptr<Graph>, kNumStepFeatureSets> graphs;
  };

  char* entry_bytes(uint64_t step) const;
  int max_logits_rows(int max_rows, uint32_t features) const;
  std::unique_ptr<Graph> capture(int max_rows, uint32_t features);
  void enqueue_step(int max_rows, uint32_t features);
  void enqueue_inputs(int max_rows, uint32_t features);
  void enqueue_pooling();
  void enqueue_logits(int max_logits_rows, uint32_t features);
  void enqueue_processors(int row_offset, int rows);
  void enqueue_sampling(int row_offset, int rows, uint32_t features);
  void enqueue_outputs(uint32_t features);

  Queue& queue_;
  Model& model_;
  const KvCaches kv_caches_;
  Drafter* drafter_;
  StepMemory& memory_;
  const ModelRunnerConfig config_;
  StepScratch scratch_;
  std::vector<Bucket> buckets_;
};

}  // namespace foretoken
