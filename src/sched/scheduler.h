#pragma once
#include <foretoken/status.h>

#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/prefix_cache.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"
#include "sched/waiting_list.h"

namespace foretoken {

struct SchedulerConfig {
  int num_blocks = 0;  // the null block included
  int block_size = 16;
  int max_num_seqs = 256;
  int max_num_batched_tokens = 2048;  // token rows a step
  int max_block_assignments = 8192;   // a step
  bool prefix_caching = true;
};

// How a sequence stands after the results of one step.
enum class SequenceEvent : uint8_t {
  kContinues,
  kReleased,  // slot and blocks are back; the record may be destroyed
};

struct SchedulerStats {
  int64_t num_preemptions = 0;
  int64_t num_prompt_tokens = 0;  // of admitted sequences, resumed ones counted again
  int64_t num_hit_tokens = 0;     // of those found in the prefix cache
};

// Decides which sequences get which rows and blocks in a step, from counts and upper bounds alone.
// It never sees a token that the device has not published. Engine thread only; allocates nothing
// after construction.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);

  // ResourceExhausted when the sequence could not run even alone; the message names the limit.
  Status check_fits(int prompt_len, int max_len) const;

  void add(Sequence& sequence);

  // Ends a sequence on the host's side (abort, stop string, timeout). kReleased when no step in
  // flight holds it; otherwise a later `reconcile` releases it.
  SequenceEvent finish(Sequence& sequence);

  // Fills `plan` (but not its step number). False, and an empty plan, when there is nothing to run
  // now. Every planned span counts as in flight until `reconcile`.
  bool plan(StepPlan& plan);

  // Applies the published result of one planned span, in step order. `ids` are the committed ids;
  // ids of a sequence that has ended on the host's side are dropped. `ended`: the device finished
  // the sequence.
  SequenceEvent reconcile(const Span& span, std::span<const int32_t> ids, bool ended);

  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return waiting_.size(); }
  bool idle() const { return running_.empty() && waiting_.empty() && num_finished_ == 0; }
  const BlockPool& blocks() const { return pool_; }
  int num_free_slots() const { return static_cast<int>(free_slots_.size()); }
  const SchedulerStats& stats() const { return stats_; }

 private:
  enum class Placement : uint8_t { kPlanned, kSkipped, kNoBlocks };

  Placement plan_span(Sequence& sequence, StepPlan& plan, Span span);
  Placement extend(Sequence& sequence, StepPlan& plan);
  void plan_running(StepPlan& plan);
  void plan_waiting(StepPlan& plan);
  int take_prefix_hits(Sequence& sequence, StepPlan& plan);
  bool admit(Sequence& sequence, StepPlan& plan);
  bool reserve(Sequence& sequence, int len, StepPlan& plan);
  bool make_room();
  void preempt(Sequence& sequence);
  void release(Sequence& sequence);
  void release_blocks(Sequence& sequence);
  void remember_full_blocks(Sequence& sequence, int num_tokens);
  int blocks_for(int len) const { return (len + config_.block_size - 1) / config_.block_size; }
  int row_budget(const StepPlan& plan) const {
    return config_.max_num_batched_tokens - plan.num_rows;
  }

  const SchedulerConfig config_;
  BlockPool pool_;
  PrefixCache cache_;
  WaitingList waiting_;
  std::vector<Sequence*> running_;  // in order of admission
  std::vector<int> free_slots_;
  int num_finished_ = 0;    // finished but not yet released
  bool preempted_ = false;  // in the plan being made
  SchedulerStats stats_;
};

}  // namespace foretoken
