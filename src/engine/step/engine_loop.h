#pragma once
#include <foretoken/engine.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/grammar/grammar_thread.h"
#include "engine/offload/kv_offload.h"
#include "engine/offload/state_store.h"
#include "engine/request/adapter_registry.h"
#include "engine/request/intake.h"
#include "engine/request/output_ring.h"
#include "engine/step/clocks/step_clock.h"
#include "engine/step/clocks/step_trace.h"
#include "engine/step/model_runner.h"
#include "engine/step/plan_feed.h"
#include "engine/step/plan_timer.h"
#include "engine/step/prefill_pacer.h"
#include "engine/step/rest_gate.h"
#include "group/shape_agreement.h"
#include "sched/scheduler.h"
#include "sched/time_bound.h"
#include "spec/length_controller.h"

namespace foretoken {

// The engine thread: plan, submit, reconcile. It plans step n + 1 from bounds while step n runs,
// and waits for nothing but "step n published". Allocates nothing after start-up. With several
// stages a step is finished when as many others have begun that no stage need rest, or when it is
// waited for.
class EngineLoop {
 public:
  // Outlive the loop.
  struct Parts {
    Queue& queue;
    ModelRunner& runner;
    Scheduler& scheduler;
    LengthController& policy;
    OutputRing& outputs;
    const StepMemory& memory;
    StepTrace* trace = nullptr;         // null: none is kept
    GrammarThread* grammars = nullptr;  // null: no request has a grammar
    PlanFeed* feed = nullptr;           // to the other ranks; null: there are none
    // With engines that share layers with this one; null: there are none. Such engines submit the
    // same steps, empty ones where they have nothing to do.
    group::ShapeAgreement* agreement = nullptr;
    Ranks* ranks = nullptr;             // with a feed or an agreement: whom a failure ends
    int num_adapter_slots = 0;          // places of adapters on the device
    int num_stages = 1;                 // that steps go through, the last one here
    TimeBound* bound = nullptr;         // on the time between tokens; null: there is none
    KvOffload* kv_offload = nullptr;    // null: host memory keeps no KV blocks
    StateStore* state_store = nullptr;  // null: there are no snapshots of states
    bool awaits_arrivals = false;       // plans as late as PlanTimer says
  };
  // A device that ends no step for `step_timeout` has failed; 0: it may take for ever.
  EngineLoop(const Parts& parts, int steps_in_flight, const TestHooks& hooks,
             std::chrono::milliseconds step_timeout = std::chrono::milliseconds(0));
  ~EngineLoop();

  // Before `start`: what the engine thread does once, as soon as no request is there. It may take
  // long, as it goes in turns. Between them it asks whether anybody waits, and then serves until
  // nobody does: Aborted when the loop ends. A turn's own steps begin with next_step, and end_turn
  // tells the number behind them.
  void set_idle_work(std::function<void()> work) { idle_work_ = std::move(work); }
  // Before `start`: what the engine thread does after each reconciled step, of which it tells how
  // many were submitted and reconciled so far, and with none in flight whenever nothing is to do.
  // Neither allocates.
  struct Watch {
    std::function<void(uint64_t num_submitted, uint64_t num_reconciled)> step;
    std::function<void()> rest;
  };
  void set_watch(Watch watch) { watch_ = std::move(watch); }
  bool has_work() const { return intake_.has_news() || !live_.empty() || rest_gate_.is_wanted(); }
  Status serve_until_idle();
  uint64_t next_step() const { return num_submitted_; }
  void end_turn(uint64_t next_step);

  // Before `start`: what the engine thread does last before it rests, with no step in flight and
  // nothing cached.
  void set_rest_work(std::function<void()> work) { rest_work_ = std::move(work); }
  // Any thread but the engine's and that of outputs: no step runs until `wake`, and requests wait.
  // Those that are there end with kAbort, or are waited for. While it rests the engine thread uses
  // no device. Engines that share layers rest together, and this one waits for the others.
  RestGate::Entered rest(bool ends_requests, const std::stop_token& recall = {}) {
    return rest_gate_.enter(ends_requests, recall, [this] { intake_.announce_change(); });
  }
  void wake() {
    rest_gate_.leave();
    intake_.announce_change();
  }
  bool is_resting() const { return rest_gate_.is_resting(); }

  void start();
  // Ends all requests with kAbort, waits for the steps in flight and joins.
  void stop();

  Intake& intake() { return intake_; }
  // The device error that ended the loop; ok while it runs. Any thread.
  Status error() const;
  int64_t num_steps() const { return num_steps_.load(std::memory_order_relaxed); }
  int64_t num_steps_in_lanes() const { return num_steps_in_lanes_.load(std::memory_order_relaxed); }
  // Whether it ended because the device does not answer: what it may still write must stay. Any
  // thread.
  bool device_hangs() const { return device_hangs_.load(); }
  // Any thread.
  StepTiming timing() const { return clock_.timing(); }
  StepTokens step_tokens() const { return clock_.step_tokens(); }

  // A snapshot made by the engine thread after each step. Any thread.
  struct Occupancy {
    std::atomic<int64_t> free_blocks{0};
    std::atomic<int64_t> free_slots{0};
    std::atomic<int64_t> preemptions{0};
    std::atomic<int64_t> running{0};
    std::atomic<int64_t> waiting{0};
    KvOffload::Counts host;
  };
  const Occupancy& occupancy() const { return occupancy_; }

 private:
  void main();
  bool serve();
  void rest_here();
  bool come_to_rest();
  void stay_at_rest();
  bool rest_with_others();
  void rise_with_others();
  void run_empty_step();
  void end_all();
  void finish_all();
  bool waits_for_requests() const;
  void set_aside(RequestState* request);
  void add_due_aside();
  void await_arrivals();
  void note_awaited(uint64_t step, int64_t ns_before);
  bool is_published(uint64_t step) const {
    return published_.word->load(std::memory_order_acquire) > step;
  }
  void take_in();
  void add_submitted(RequestState* request);
  void end_requested();
  void end_late();
  std::span<const DraftGrant> grant_drafts();
  bool plan_and_submit();
  bool agree(StepPlan& plan, bool planned);
  bool submit(StepPlan& plan);
  void run_for_others();
  void hold_awaited();
  bool plan_next(StepPlan& plan);
  bool feed(const StepPlan& plan);
  bool load_adapters(const StepPlan& plan);
  bool move_blocks(const StepPlan& plan);
  bool move_states(const StepPlan& plan);
  bool feeds(const Status& status);
  void finish_before(uint64_t end_step);
  void expect_masks(const StepPlan& plan);
  void note_starts(const StepPlan& plan);
  Status wait_for_step();
  void wait_and_reconcile();
  void note_step(uint64_t step);
  TraceLane* lane() const { return trace_ != nullptr ? trace_->engine() : nullptr; }
  // Tokens of the step, the drafts that were kept among them.
  int64_t num_computed(const StepPlan& plan, const ResultView& view) const;
  void observe_drafts(uint64_t step, const Span& span, const SpanResult& result);
  void reconcile(const StepPlan& plan, size_t index, const ResultView& view);
  void take_rows(const StepPlan& plan, size_t index, const ResultView& view);
  void end_sequence(Sequence& sequence, FinishReason reason);
  void fail_everything(const Status& status);
  void forget(Sequence& sequence);
  void note_occupancy();

  Queue& queue_;
  ModelRunner& runner_;
  Scheduler& scheduler_;
  LengthController& policy_;
  const Event published_;
  OutputRing& outputs_;
  const PlanLimits limits_;
  const ResultLimits result_limits_;
  const StepStamps* const stamps_;
  StepTrace* const trace_;
  GrammarThread* const grammars_;
  PlanFeed* const feed_;
  group::ShapeAgreement* const agreement_;
  Ranks* const ranks_;
  PrefillPacer pacer_;
  TimeBound* const bound_;
  KvOffload* const kv_offload_;
  StateStore* const state_store_;
  const bool awaits_arrivals_;
  PlanTimer plan_timer_;
  int64_t begun_ns_ = 0;  // when the oldest step in flight began; 0: not seen
  const int steps_in_flight_;
  const uint64_t num_stages_;
  const std::chrono::milliseconds step_timeout_;
  const TestHooks hooks_;
  ResidentAdapters adapters_;
  Intake intake_;
  std::array<StepPlan, kStepRingSize> plans_;
  std::array<StepShape, kStepRingSize> shapes_{};
  BatchDemand demand_;
  std::array<DraftGrant, kMaxDrafters> grants_{};
  std::array<bool, kStepRingSize> follows_{};  // by step, as StepClock::note_step wants it
  std::array<bool, kStepRingSize> awaited_{};  // by step: its plan waited for arrivals
  bool holds_ = false;                         // some sequence is held
  bool is_closing_ = false;                    // what comes now waits until the loop has rested
  RequestState* aside_ = nullptr;              // what has come so, oldest first
  RequestState* last_aside_ = nullptr;         // its end
  bool is_told_ = false;                       // something has changed, perhaps in another engine
  // What this engine tells those that share layers with it.
  enum class RestWish : uint8_t { kNone, kWants, kRests };
  RestWish rest_wish_ = RestWish::kNone;
  bool rested_ = true;         // there was nothing to plan since the last step
  group::AgreedShape agreed_;  // the last agreement
  std::function<void()> idle_work_;
  Watch watch_;
  std::function<void()> rest_work_;
  RestGate rest_gate_;
  uint64_t resumed_at_ = 0;  // the step before is no request's
  uint64_t num_submitted_ = 0;
  uint64_t num_finished_ = 0;  // of those; the others have only begun
  uint64_t num_reconciled_ = 0;
  int64_t next_deadline_ns_ = INT64_MAX;  // no live request has an earlier one
  std::vector<Sequence*> live_;           // everything added and not released
  std::atomic<int64_t> num_steps_{0};
  std::atomic<int64_t> num_steps_in_lanes_{0};  // submitted
  StepClock clock_;
  Occupancy occupancy_;
  mutable std::mutex error_mutex_;
  Status error_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> device_hangs_{false};
  std::thread thread_;
};

}  // namespace foretoken
