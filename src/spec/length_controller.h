#pragma once
#include <foretoken/config.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "spec/batch_rates.h"
#include "spec/branch_policy.h"
#include "spec/cost_feedback.h"
#include "spec/cost_table.h"
#include "spec/draft_budget.h"
#include "spec/draft_trials.h"
#include "spec/learned_rates.h"

namespace foretoken {

enum class LengthMode : uint8_t {
  kAdaptive,  // what pays by the step-time table and the acceptance of late
  kFixed,     // always as many as configured
  kOff,       // none
  kSchedule,  // by the number of sequences
};

struct LengthControllerConfig {
  struct PolicyDrafter {
    int max_draft_tokens = 0;  // K
    bool looks_up = false;     // it may find no draft; these three as DrafterTraits has them
    bool has_kv = false;       // entries to catch up
    bool keeps_written = false;
    int max_catch_up_rows = 0;  // of a step
    int num_branches = 0;       // that its drafts may have beside them in a step
    // Where it begins, by itself and in lists before others; the default knows nothing.
    PolicyState learned = {};
    PolicyState learned_in_lists = {};
  };
  LengthMode mode = LengthMode::kAdaptive;
  std::vector<DraftSchedule> schedule = {};  // with kSchedule
  int steps_in_flight = 1;
  // Adaptive: what steps really take corrects the table; otherwise it decides alone.
  bool follows_device = false;
  // The device computes beside the host, so that short steps can take as long as the host's part of
  // them, whatever they verify.
  bool host_may_bound = false;
  std::vector<CostFeedback::Known> steps = {};  // what an earlier engine with the same table saw
  std::vector<PolicyDrafter> drafters = {};
};

// Decides how many drafts each drafter may propose in a step and which sequences it catches up for
// that. Per step, on the engine thread:
//   scheduler.describe(demand);
//   grants = policy.decide(step, demand);
//   if (!scheduler.plan(plan, grants)) stop here: `step` may be decided again
//   policy.planned(step, {...});
//   submit; with adaptive(), choose_lengths gets row_ns, and draft_ns of plan.drafts[d]
// and for each span of a reconciled step, in step order: policy.observe(...); then
// policy.step_took(...).
//
// Adaptive: the limit P in 0..K that maximises expected tokens per modelled time over the batch;
// chances of acceptance by position come from results that are at least max(2, steps_in_flight)
// steps old, so that one and two steps in flight decide alike. With P = 0 the drafter rests: it
// enqueues nothing, and sequences fall behind. A resting one is tried with one draft of a few
// sequences every 64 steps, where that fits into 1 % of the modelled time; one of which nothing is
// known yet at once, where what is to be expected of it would pay. Sequences with a prediction are
// decided about by their own results, which nothing is left of once there are none, and look-ups
// that stand before another drafter by what they do there; a drafter's limit is the highest of all.
// Sequences that fell behind, and prompts, are caught up where the tokens that they may still emit
// pay for it. Integer arithmetic: the same calls, `step_took` among them, give the same grants.
// Allocates nothing after construction.
class LengthController {
 public:
  // `times` lives as long as the policy; only the adaptive mode reads it.
  LengthController(const LengthControllerConfig& config, const CostTable& times);

  // One grant a drafter, valid until the next call.
  std::span<const DraftGrant> decide(uint64_t step, const BatchDemand& demand);

  // What a step holds.
  struct PlannedStep {
    int num_spans = 0;
    int num_rows = 0;
    int num_prompt_rows = 0;  // of num_rows, those of prompt chunks (StepPlan::num_new_ids)
    std::array<DraftUse, kMaxDrafters> use{};
    int64_t num_tokens = 0;   // that its sequences know
    int num_branch_rows = 0;  // beside num_rows
  };
  void planned(uint64_t step, const PlannedStep& plan);

  // Whose drafts are rated by themselves: of sequences with a prediction, and of a look-up that has
  // another drafter behind it in the sequence's list.
  enum class Kind : uint8_t { kOwn, kPredicted, kListed };
  // One span's result: `max_verified` of the span, num_drafted and num_accepted of its SpanResult.
  // Each drafter of a list is told; the ones whose turn it was not hear of no drafts.
  void observe(uint64_t step, int drafter, int max_verified, int num_drafted, int num_accepted,
               Kind kind = Kind::kOwn);
  // Of a span that had drafts, as BranchPolicy has it.
  void observe_branches(uint64_t step, int committed, int winner, int by_branch) {
    branches_.observe(step, committed, winner, by_branch);
  }
  // In a span of the step, which was observed, a look-up found a long piece of text: where it rests
  // it is woken, if drafts of which nothing is known would pay.
  void found(uint64_t step, int drafter, Kind kind);

  // A step, all of whose spans were observed and that is at most kRingSize - 1 steps old, took so
  // long until the next one began, or until it ended where none followed.
  void step_took(uint64_t step, int64_t ns);

  // `times` has other contents now: what steps took of those before is forgotten, and what drafters
  // showed stays.
  void times_changed();
  // What steps really take.
  const CostFeedback& feedback() const { return feedback_; }

  // What it knows of a drafter, for a policy that begins with it (PolicyDrafter::learned).
  const PolicyState& learned(int drafter, Kind kind) const;

  bool adaptive() const { return config_.mode == LengthMode::kAdaptive; }

 private:
  static constexpr int kRingSize = 8;  // more than the steps whose results are kept back

  struct State : PolicyState {
    void take_in(const BatchResults& results, const LengthControllerConfig::PolicyDrafter& drafter);
    void rest_from(uint64_t step);

    bool probing = false;
    uint64_t next_probe = 0;
    // Of a look-up: sequences that had room where `rates.share` was seen, in 1/BatchRates::kOne; 0:
    // all.
    int64_t num_with_room = 0;
  };
  // What the step does beside the drafter that is decided about.
  struct Load {
    int seqs = 0;         // that decode
    int64_t granted = 0;  // drafts that they have room for
    int64_t live = 0;     // drafts that they will have
    int64_t tokens = 0;   // expected, in 1/BatchRates::kOne
  };
  struct Choice {
    int num_draft_tokens = 0;
    int64_t saved_ns = 0;  // by each token, compared with no drafts
    int min_class = 0;     // DraftGrant::min_class
  };
  // Of a look-up's sequences: what it brings them, and whether others come while they run.
  struct Gains {
    NumByGain counts{};
    int num_coming = 0;
    bool others_come = false;
  };
  // Sequences that a choice is made for, beside `load`; null: all of them have room, or none.
  struct Batch {
    int num_sequences = 0;
    const Load& load;
    const Gains* gains = nullptr;
  };
  struct Room {
    int num_sequences = 0;
    int min_class = 0;
  };
  // Of steps with a limit.
  struct Speed {
    int64_t tokens = 0;  // expected, in 1/BatchRates::kOne
    int64_t ns = 0;      // of kRingSize steps
    Room room;
    int64_t accepted = 0;  // of a sequence with room, in 1/BatchRates::kOne
  };

  void take_in(uint64_t step);
  Load load_beside(int drafter, const BatchDemand& demand) const;
  Choice choose(int drafter, const State& state, const Batch& batch) const;
  std::array<Room, 2> rooms_of(int limit, const Batch& batch) const;
  Speed speed_of(int drafter, const State& state, int limit, const Room& room,
                 const Batch& batch) const;
  bool slows_others(const Speed& speed, int64_t plain_ns, const Batch& batch) const;
  // Whether requests wait or have prompts to compute.
  static bool others_come(const BatchDemand& demand);
  Gains gains_of(int drafter, const BatchDemand& demand, Kind kind) const;
  void raise_limit(uint64_t step, int drafter, const BatchDemand& demand, Kind kind,
                   DraftGrant& grant);
  int64_t ring_ns(const Load& load, int64_t draft_ns) const;
  int64_t context_ns(int num_seqs, int drafts, int64_t step_ns) const;
  int payable_class(int drafter, int64_t saved_ns, int64_t num_missing) const;
  int num_drafting(int drafter, const DraftDemand& own, int max_class) const;
  int num_first_learners(int drafter, const DraftDemand& own) const;
  int num_branches(uint64_t step, int drafter, const DraftGrant& grant, const BatchDemand& demand);
  DraftGrant set_grant(const LengthControllerConfig::PolicyDrafter& drafter,
                       const BatchDemand& demand) const;
  DraftGrant adaptive_grant(uint64_t step, int drafter, const BatchDemand& demand);
  DraftGrant probe(uint64_t step, int drafter, const BatchDemand& demand);
  DraftGrant probe_with(int drafts, int drafter, const BatchDemand& demand);
  int probing_lookups(int drafter, const BatchDemand& demand) const;
  int64_t probe_ns(int drafter, int num_decoding, const DraftUse& use) const;
  int64_t really_ns(int num_seqs, int drafts, int64_t table_ns) const {
    return table_ns + feedback_.extra_ns(num_seqs, drafts, table_ns);
  }

  // A step of the last kRingSize.
  struct StepRecord {
    PlannedStep plan;
    int num_live = 0;       // drafts that it verified
    bool is_trial = false;  // of DraftTrials
  };
  StepRecord& record_of(uint64_t step) { return records_[step % kRingSize]; }
  bool tells(const PlannedStep& plan) const;
  int64_t table_ns(const StepRecord& record) const;
  int64_t plain_ns(int num_seqs) const;
  int64_t trial_loss_ns(int drafter, int limit, int num_sequences) const;
  int untried_limit(int drafter, const State& state, int limit, int num_sequences) const;
  bool try_more(int drafter, const DraftDemand& own, DraftGrant& grant);
  int trial_limit(int drafter, int limit, int num_sequences) const;

  const LengthControllerConfig config_;
  const CostTable& times_;
  const uint64_t max_age_;  // results of steps younger than this are not looked at
  static constexpr size_t kNumKinds = 3;
  template <class T>
  using ByKind = std::array<T, kNumKinds>;
  std::array<std::array<ByKind<BatchResults>, kMaxDrafters>, kRingSize> results_{};
  uint64_t num_taken_in_ = 0;  // steps whose results are in the rates
  State& state_of(int drafter, Kind kind) {
    return kind_states_[static_cast<size_t>(drafter)][static_cast<size_t>(kind)];
  }
  std::array<State, kMaxDrafters> states_{};
  std::array<ByKind<State>, kMaxDrafters> kind_states_{};  // kOwn is not used
  std::array<StepRecord, kRingSize> records_{};            // the last steps
  CostFeedback feedback_;
  DraftTrials trials_;
  BranchPolicy branches_;
  int64_t budget_ns_ = 0;    // for probes
  int64_t mean_tokens_ = 0;  // that a sequence knows
  int num_decoding_ = 0;     // sequences of the step that was decided last
  std::vector<DraftGrant> grants_;
};

}  // namespace foretoken
