#pragma once
#include <array>
#include <memory>
#include <vector>

#include "attention/kv_cache.h"
#include "base/result.h"
#include "device/device.h"
#include "draft/drafter.h"
#include "engine/step_memory.h"
#include "model/model.h"

namespace foretoken {

// Faults planted by tests; all off in production.
struct TestHooks {
  bool reuse_ring_entry = false;  // a plan is also written over the entry of the step before
  int upload_delay_us = 0;        // the queue dawdles before it reads the entry
};

struct ModelRunnerConfig {
  int max_rows = 0;  // token rows of the largest step
  int max_logits_rows = 0;
  int logits_tile = 0;  // logits rows computed at once
  bool graphs = true;
  TestHooks hooks;
};

// Runs the nine parts of a step on the queue. Knows shapes, no policy: a plan already encoded in
// ring entry (step mod kStepRingSize) and a bound on its rows are all it needs. Engine thread.
class ModelRunner {
 public:
  ModelRunner(Device& device, Queue& queue, Model& model, const KvCaches& kv_caches,
              Drafter* drafter, StepMemory& memory, const ModelRunnerConfig& config);

  // Takes the logits buffer and captures one graph per row bucket.
  Status start();

  // The ring entry for a step; not in flight as long as at most kStepRingSize - 1 steps are.
  PlanView entry(uint64_t step) const;
  ResultView result(uint64_t step) const;

  // Enqueues step number `step` of at most `num_rows` token rows without waiting.
  void submit(uint64_t step, int num_rows);

  int num_buckets() const { return static_cast<int>(buckets_.size()); }
  int64_t scratch_bytes() const { return static_cast<int64_t>(arena_.bytes_taken()); }

 private:
  struct Bucket {
    int max_rows = 0;
    std::unique_ptr<Graph> graph;  // none: the ops are enqueued one by one
  };

  char* entry_bytes(uint64_t step) const;
  void enqueue_step(int max_rows);
  void enqueue_inputs(int max_rows);
  void enqueue_logits(int max_logits_rows);
  void enqueue_outputs();

  Queue& queue_;
  Model& model_;
  const KvCaches kv_caches_;
  Drafter* drafter_;
  StepMemory& memory_;
  const ModelRunnerConfig config_;
  Arena arena_;
  float* logits_ = nullptr;  // [logits_tile, vocab]
  std::vector<Bucket> buckets_;
};

}  // namespace foretoken
