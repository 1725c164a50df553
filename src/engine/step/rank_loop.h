#pragma once
#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "device/queue.h"
#include "engine/offload/kv_offload.h"
#include "engine/offload/state_store.h"
#include "engine/request/adapter_registry.h"
#include "engine/step/clocks/stage_clock.h"
#include "engine/step/model_runner.h"
#include "engine/step/plan_feed.h"
#include "engine/step/ranks.h"
#include "engine/step/step_memory.h"

namespace foretoken {

// What a rank above 0 does instead of an EngineLoop: it runs the steps that rank 0 plans. Plans are
// received on a thread of their own, so that a queue that fails ends the group at once.
class RankLoop {
 public:
  // Outlive the loop.
  struct Parts {
    Queue& queue;
    ModelRunner& runner;
    const StepMemory& memory;
    Ranks& ranks;
    int num_adapter_slots = 0;          // places of adapters on the device
    KvOffload* kv_offload = nullptr;    // null: host memory keeps no KV blocks
    StateStore* state_store = nullptr;  // null: there are no snapshots of states
    // Does so with this rank's memory; no step is in flight.
    std::function<SleepOutcome(const SleepOrder&)> obey = {};
  };
  explicit RankLoop(const Parts& parts);
  ~RankLoop();

  // Until rank 0 ends, and all steps have run. An error ends the whole group.
  Status run();

 private:
  static constexpr uint64_t kRoom = 4;  // plans that wait

  void receive_main();
  Status run_steps();
  Result<ReceivedPlan*> next();
  Status end();
  Status begin_step(const ReceivedPlan& plan);
  Status wait_for_entry(uint64_t step);
  Status load_adapter(ReceivedPlan* plan);
  Status move_blocks(const ReceivedPlan& plan);
  Status move_states(const ReceivedPlan& plan);
  Status obey(const SleepOrder& order);
  Status look_at_queue();
  void note_stages(uint64_t end_step);

  const Parts parts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<ReceivedPlan, kRoom> plans_;
  uint64_t num_received_ = 0;
  uint64_t num_taken_ = 0;
  uint64_t num_begun_ = 0;
  StageClock stage_clock_;
  ResidentAdapters adapters_;
  Status receive_error_;
  bool stops_ = false;
  std::thread receiver_;
};

}  // namespace foretoken
