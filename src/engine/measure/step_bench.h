#pragma once
#include <functional>
#include <string>
#include <vector>

#include "attention/kv_cache.h"
#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "device/op_list.h"
#include "engine/measure/made_up_ids.h"
#include "engine/step/model_runner.h"
#include "engine/step/step_memory.h"
#include "kernels/op_cost.h"
#include "model/model.h"

namespace foretoken {

// The parts of an engine whose loop does not run; they outlive the bench.
struct StepBenchParts {
  Device& device;
  Queue& queue;
  Model& model;
  KvCaches caches;
  ModelRunner& runner;
  StepMemory& memory;
  int max_len = 0;            // of a sequence
  int max_rows = 0;           // of a step
  int max_logits_rows = 0;    // that Model::logits takes at once
  int num_blocks = 0;         // of the full group, the null block included
  int num_window_blocks = 0;  // of the windowed group, likewise; 0: there is none
};

// A sequence of a made-up step: KV positions before its rows, and rows. Up to kMaxOwnDrafts + 1
// rows are the last known token and drafts, all with logits; more are prompt tokens, the last with
// them.
struct MadeUpSequence {
  int context = 0;
  int rows = 1;
};

// Ops of one name and size, and what one of them takes. Those of all layers run in turns, so that
// weights come from memory as they do in a step.
struct OpTime {
  std::string name;
  std::string shape;
  int count = 0;
  double ns = 0;          // of one
  double in_step_ns = 0;  // of one where it stands among the ops of a step, each behind a mark
  OpCost cost;            // of one
};

// Experts of mixtures that the rows of a step touch.
struct TouchedExperts {
  int mixtures = 0;     // ops that choose experts; without any the rest is 0
  double count = 0;     // of experts, in the mean over those
  double touched = 0;   // of these, by a row at least
  double expected = 0;  // where rows choose independently of one another
};

// Measures parts of steps by the device's clock, on made-up sequences. Start-up thread; blocks.
// What the engine's memory held before is lost.
class StepBench {
 public:
  explicit StepBench(const StepBenchParts& parts);

  // Brings the rows of these sequences onto the device, each with blocks of its own and random ids,
  // as of StepProfile. What follows is about them.
  Status upload(const std::vector<MadeUpSequence>& sequences);

  // The ops of the target's forward, and of the logits of all rows that have some.
  std::vector<ListedOp> forward_ops(bool with_logits);
  Result<OpCost> cost(const std::vector<ListedOp>& ops);

  // Nanoseconds that the ops take on the device, one run after the other: the median over runs that
  // take about `seconds` in all. graph: recorded and replayed, otherwise enqueued one by one.
  Result<double> time_ns(const std::vector<ListedOp>& ops, bool graph, double seconds);

  // All ops of the target's step, from its inputs to its result, without drafts.
  std::vector<ListedOp> step_ops();
  // The same as `time_ns` for each kind of op among those of a step, by itself, in the order of
  // their first; `seconds` for each. Ops that change what they read are timed inside of whole
  // steps.
  Result<std::vector<OpTime>> op_times(const std::vector<ListedOp>& ops, double seconds);
  // Runs the ops of a step once and counts.
  Result<TouchedExperts> touched_experts(const std::vector<ListedOp>& ops);
  // The median of a few whole steps, each a graph, on the device.
  Result<double> step_ns(const std::vector<ListedOp>& ops);

 private:
  // The ops of one kind.
  struct OpGroup {
    OpTime time;
    std::vector<ListedOp> ops;
    std::vector<size_t> places;  // in the step
  };
  int64_t weight_bytes(Op op, const void* args) const;
  Result<std::vector<OpGroup>> group_ops(const std::vector<ListedOp>& ops);
  Status take_memory();
  Status check_sequences(const std::vector<MadeUpSequence>& sequences) const;
  void write_states(const std::vector<MadeUpSequence>& sequences);
  void write_tables(const std::vector<MadeUpSequence>& sequences);
  void write_plan(uint64_t step);
  void copy_states();
  void copy_ids();
  // Fresh states and plan for one more run of the step.
  void begin_step();
  // Runs the recorded ops of a step on fresh states.
  Status run_step(Graph& graph);
  // For each of the first kMaxMarkedOps - 1 ops: nanoseconds inside of steps.
  Result<std::vector<double>> in_step_ns(const std::vector<ListedOp>& ops);
  Result<LiveRows> live_rows(const LiveRowsPlace& place, LiveRows* last);
  Result<double> sample_ns(const std::function<void()>& enqueue, int count);
  int64_t blocks_of(const MadeUpSequence& sequence) const;
  int row_bucket() const;

  static constexpr size_t kMaxMarkedOps = 4096;

  const StepBenchParts parts_;
  Arena pinned_;
  Arena arena_;
  MadeUpIds ids_;
  SlotState* states_ = nullptr;   // [num_slots]
  SlotParams* params_ = nullptr;  // [num_slots]
  int32_t* tables_ = nullptr;     // [num_slots, max_blocks]
  int32_t* window_tables_ = nullptr;
  int64_t* marks_ = nullptr;      // [2]
  StepCounts* counts_ = nullptr;  // pinned, for what is read back
  int32_t* rows_ = nullptr;       // pinned [max_rows], likewise
  float* logits_ = nullptr;       // [max_logits_rows, vocab]
  std::vector<MadeUpSequence> sequences_;
  StepPlan plan_;
  int64_t* op_marks_ = nullptr;  // pinned [2 * kMaxMarkedOps]
  int num_rows_ = 0;
  int num_logits_rows_ = 0;
};

}  // namespace foretoken
