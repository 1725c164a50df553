#pragma once
#include <memory>
#include <string>

#include "base/result.h"
#include "base/trace.h"
#include "device/device.h"
#include "engine/step/clocks/op_tracer.h"
#include "sched/step_plan.h"

namespace foretoken {

// What a step holds, by its plan: sequences, rows with room for drafts, ids of prompts (a scored
// chunk has one that is no row), sequences that drafts are made for, passes of the drafter with
// most, rows that drafters catch up.
TraceDetails step_details(const StepPlan& plan);

// What an engine did, step by step: the engine thread, the output thread and the device, as one
// file. Keeps the newest 262,144 events of each.
class StepTrace {
 public:
  // Compares the clocks of device and host, which takes some milliseconds. `path` as of
  // Trace::create; `ranges`: of the device's profiler.
  static Result<std::unique_ptr<StepTrace>> start(const std::string& path, Device& device,
                                                  Queue& queue, const ProfilerRanges& ranges);

  TraceLane* engine() const { return engine_; }
  TraceLane* output() const { return output_; }

  // A step that ended on the device, by its clock: its target's part and its drafts. Engine thread.
  void add_step(uint64_t step, int64_t begin_ns, int64_t published_ns, int64_t end_ns,
                const TraceDetails& details = {});

  // Writes the file; the threads have ended and the queue is drained. `ops`: those of an engine
  // without graphs, or null.
  Status finish(const OpTracer* ops);

 private:
  StepTrace() = default;
  Status compare_clocks(Device& device, Queue& queue);

  std::unique_ptr<Trace> trace_;
  TraceLane* engine_ = nullptr;
  TraceLane* output_ = nullptr;
  TraceLane* device_ = nullptr;
  int64_t offset_ns_ = 0;  // from the device's clock to now_ns()
  int64_t first_begin_ns_ = 0;
  int64_t last_end_ns_ = 0;
  int64_t busy_ns_ = 0;
  int64_t num_steps_ = 0;
};

}  // namespace foretoken
