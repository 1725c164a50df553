#pragma once
#include <foretoken/status.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sched/adapter_slots.h"
#include "sched/draft_ledger.h"
#include "sched/kv_blocks.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"
#include "sched/waiting_queue.h"

namespace foretoken {

enum class SchedulingPolicy : uint8_t {
  kFcfs,      // first come, first served
  kPriority,  // lower Sequence::priority first, then first come
};

struct SchedulerConfig {
  int num_blocks = 0;         // of the full group, the null block included
  int num_window_blocks = 0;  // of the windowed group, likewise; 0: no windowed layers
  int window = 0;             // positions that a row of those sees
  int block_size = 16;
  int max_num_seqs = 256;
  int max_num_batched_tokens = 2048;  // token rows a step
  // Most rows of a prompt's chunk while others run or could; 0: as many as there are.
  int long_prefill_token_threshold = 0;
  // Longer prompts get the rows that `plan` is told; 0: none is so long.
  int paced_prompt_len = 0;
  // Device::rows_of_a_wave of most products: where others decode, a prompt's chunk leaves rows that
  // would barely begin another wave to the next step; 0: none.
  int wave_rows = 0;
  // The unit of prompt_share, where no bound is given; 0: prompts fill steps. Of paced prompts the
  // one that lacks least goes first then.
  int share_rows = 0;
  int max_logits_rows = 0;           // a step, at least max_num_seqs; 0: as many as token rows
  int max_init_words = 0;            // a step, at least those of any one sequence
  int max_block_assignments = 8192;  // a step
  bool prefix_caching = true;
  // Images that host memory keeps: of blocks of the full group and, where there are any of those at
  // all, of the windowed one and of snapshots of states.
  int num_host_blocks = 0;
  int num_host_windows = 0;
  int num_host_states = 0;
  // Of states of recurrent layers, which hits want then (kv/state_snapshots.h); 0: there are none.
  int num_snapshots = 0;
  // A sequence's first span is its prompt, whole; with it there are no hits.
  // Prompts have at most max_num_batched_tokens then, and score nothing.
  bool whole_prompts = false;
  // Parts of the device that work on different steps at once: a sequence is in at most one of so
  // many steps that follow each other, unless none of its steps is in flight, and every step gets
  // its share of the sequences.
  int num_stages = 1;
  int num_adapter_slots = 0;  // adapters that the sequences of a step may have together
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  std::vector<SchedulerDrafter> drafters = {};  // by Sequence::drafter
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
  int64_t num_lookups = 0;        // waiting prompts looked up there, again ones counted again
};

// Decides which sequences get which rows and blocks in a step, from counts and upper bounds alone.
// It never sees a token that the device has not published. Sequences are planned and admitted in
// the order of runs_before, and preempted from its end. Under the priority policy a waiting one
// that finds no slot or blocks also preempts a running one of worse priority, so that a steady
// stream of better ones keeps the worse waiting for ever. The same calls give the same plans.
// A waiting sequence whose adapter finds no place lets those without an adapter pass, and no
// others, so that its turn comes. Engine thread only; allocates nothing after construction.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);

  // ResourceExhausted when the sequence could not run even alone; the message names the limit.
  Status check_fits(int prompt_len, int max_len) const {
    return kv_.check_fits(prompt_len, max_len);
  }

  // With whole_prompts: InvalidArgument where the prompt is longer than a step.
  Status check_whole(const Sequence& sequence) const;

  void add(Sequence& sequence);

  // Ends a sequence on the host's side (abort, stop string, timeout). kReleased when no step in
  // flight holds it; otherwise a later `reconcile` releases it.
  SequenceEvent finish(Sequence& sequence);

  // What the running sequences could use of the drafters in the next step.
  void describe(BatchDemand& demand) const;

  // Fills `plan` (but not its step number). False, and an empty plan, when there is nothing to run
  // now. Every planned span counts as in flight until `reconcile`. `grants`: by drafter; none: no
  // drafts and nothing caught up.
  bool plan(StepPlan& plan, std::span<const DraftGrant> grants = {}, PacedRows paced = {});

  // The published result of a planned span.
  struct Outcome {
    std::span<const int32_t> ids = {};  // committed
    bool ended = false;                 // the device finished the sequence
    int draft_missing = 0;              // of its SpanResult
    int num_accepted = 0;               // of its drafts, which `drafter` made
    int drafter = 0;
    bool found_lookup = false;  // a look-up knows a long piece of text behind it
  };
  // Applies it, in step order. Ids of a sequence that has ended on the host's side are dropped.
  SequenceEvent reconcile(const Span& span, const Outcome& outcome);

  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return waiting_.size(); }
  bool idle() const { return running_.empty() && waiting_.empty() && num_finished_ == 0; }
  const BlockPool& blocks() const { return kv_.full(); }
  // Null without windowed layers.
  const BlockPool* window_blocks() const { return kv_.windowed(); }
  // The slots will be used for other things between plans: what sequences left there is not kept.
  void drop_left_states() { kv_.drop_left_states(); }
  // Without a sequence that holds blocks: nothing that was computed is found again.
  void drop_cached() { kv_.drop_cached(); }
  // Up to `most` blocks that no sequence ever had, in either group.
  void find_unused_blocks(size_t most, std::vector<BlockId>& found) const;
  int num_free_slots() const { return static_cast<int>(free_slots_.size()); }
  const SchedulerStats& stats() const { return stats_; }
  const HostBlockStats& host_stats() const { return kv_.host_stats(); }

 private:
  enum class Placement : uint8_t { kPlanned, kSkipped, kNoBlocks };

  Placement extend(Sequence& sequence, StepPlan& plan);
  Span next_chunk(Sequence& sequence, const StepPlan& plan) const;
  Span next_token(Sequence& sequence, const StepPlan& plan) const;
  Placement plan_span(StepPlan& plan, Span span);
  void book(StepPlan& plan, const Span& span);
  void plan_running(StepPlan& plan);
  void plan_waiting(StepPlan& plan);
  bool has_room(const Sequence& sequence, const StepPlan& plan) const;
  bool finds_adapter(const Sequence& sequence) const {
    return sequence.adapter == 0 || adapters_.has_room(sequence.adapter);
  }
  void take_adapter(Sequence& sequence, StepPlan& plan);
  void give_back_adapter(Sequence& sequence);
  void plan_branches(StepPlan& plan) const;
  bool admit(Sequence& sequence, StepPlan& plan);
  void keep_states(StepPlan& plan);
  void note_states(const StepPlan& plan);
  void make_way_for_waiting();
  bool make_room();
  void preempt(Sequence& sequence);
  void note_drafter(const Span& span, int missing);
  void release(Sequence& sequence);
  int num_behind(const StepPlan& plan) const;
  bool rests(const Sequence& sequence) const;
  // Whether steps pass over the sequence for now.
  bool sits_out(const Sequence& sequence) const {
    return sequence.draining || sequence.is_held || rests(sequence);
  }
  int share_of_sequences() const;
  int chunk_budget(const Sequence& sequence, const StepPlan& plan) const;
  int whole_waves(int chunk, const StepPlan& plan) const;
  bool is_paced(const Sequence& sequence) const;
  void pace(StepPlan& plan, PacedRows paced);
  void bound_prompts(StepPlan& plan, const TimeBound& bound);
  void share_prompts();
  void favour_shortest(int num_paced);
  int prompt_budget(const StepPlan& plan) const {
    return std::min(row_budget(plan), bound_rows_ - plan.num_prompt_rows());
  }
  int row_budget(const StepPlan& plan) const {
    return config_.max_num_batched_tokens - plan.num_rows;
  }
  int logits_budget(const StepPlan& plan) const {
    return config_.max_logits_rows - plan.num_logits_rows;
  }

  const SchedulerConfig config_;
  KvBlocks kv_;
  DraftLedger drafts_;
  AdapterSlots adapters_;
  WaitingQueue waiting_;
  std::vector<Sequence*> running_;  // in the order of runs_before
  std::vector<int> free_slots_;
  Sequence* set_aside_ =
      nullptr;  // waiting ones that the plan being made passes over, by next_aside
  uint64_t num_added_ = 0;
  uint64_t num_plans_ = 0;  // with spans
  int max_spans_ = 0;       // of the plan being made
  int num_finished_ = 0;    // finished but not yet released
  bool preempted_ = false;  // by a running sequence, in the plan being made
  int paces_beside_ = 0;    // plans for which short ones count as there, since they come again
  int paced_rows_ = 0;      // of each paced prompt in that plan; 0: as many as there are
  int bound_rows_ = 0;      // of all prompts together in that plan
  bool is_bound_ = false;   // those are fewer than there are, since others wait
  bool is_shared_ = false;  // by prompt_share
  const Sequence* favoured_ = nullptr;  // paced prompt that gets others' rows in that plan
  int favoured_rows_ = 0;
  SchedulerStats stats_;
};

}  // namespace foretoken
