#pragma once
#include <memory>
#include <string>
#include <vector>

#include "attention/kv_cache.h"
#include "base/result.h"
#include "draft/parts/drafter.h"
#include "engine/request/request_builder.h"
#include "engine/step/model_runner.h"
#include "engine/step/step_memory.h"
#include "sched/scheduler.h"
#include "spec/length_controller.h"
#include "support/counting_queue.h"

namespace foretoken {

// The parts of an engine without its threads, so that a test can drive them step by step.
struct EngineParts {
  std::unique_ptr<Device> device;
  std::unique_ptr<Queue> queue;
  std::unique_ptr<test::CountingQueue> counting;  // the runner's face of the queue
  std::unique_ptr<Model> model;
  std::unique_ptr<Drafter> drafter;  // n-gram, or null
  std::unique_ptr<KvCache> kv_cache;
  std::unique_ptr<StepMemory> memory;
  std::unique_ptr<Scheduler> scheduler;
  CostTable step_times;
  std::unique_ptr<LengthController> policy;  // fixed
  std::vector<DraftGrant> grants;            // as many drafts as configured
  std::unique_ptr<ModelRunner> runner;
  RequestLimits limits;

  static constexpr int kBlockSize = 16;
  static constexpr int kMaxLen = 256;
  static constexpr int kMaxRows = 48;
  static constexpr int kNumSlots = 4;
  static constexpr int kMaxTop = 5;

  static Result<std::unique_ptr<EngineParts>> make(const std::string& model_folder,
                                                   int num_draft_tokens,
                                                   const GraphConfig& graphs = {},
                                                   int captures_left = INT_MAX);
  ~EngineParts();

  // A record for `request`, owned by the caller; not yet added to the scheduler.
  std::unique_ptr<RequestState> record(Request request, uint64_t number = 0) const;
};

}  // namespace foretoken
