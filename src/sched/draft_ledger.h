#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sched/sequence.h"
#include "sched/step_plan.h"
#include "spec/draft_budget.h"

namespace foretoken {

// What the scheduler knows of a drafter (see DrafterTraits).
struct SchedulerDrafter {
  bool looks_up = false;
  bool has_kv = false;
  bool keeps_written = false;
  int entries_ahead = 0;
  int max_len = std::numeric_limits<int>::max();
  bool keeps_states = false;
};

// Which drafter entries each sequence lacks, as bounds, and how the grants of a step are dealt out
// to its spans. Engine thread; allocates nothing after construction.
class DraftLedger {
 public:
  explicit DraftLedger(std::vector<SchedulerDrafter> drafters) : drafters_(std::move(drafters)) {}

  // Opens a step. `grants`: by drafter; where they end, nothing is granted.
  void open(std::span<const DraftGrant> grants);
  // Most drafts that a sampling span of the sequence, not booked yet, can hope to propose: of its
  // drafter, and of the look-ups before it, which write no entries.
  int hoped_limit(const Sequence& sequence) const;
  int hoped_lookups(const Sequence& sequence) const;
  // Positions behind the known ids whose entries proposing so many drafts writes.
  int positions_ahead(const Sequence& sequence, int num_draft_tokens) const;
  // Of any sequence of the step.
  int max_positions_ahead() const;
  // Settles num_draft_tokens (what was hoped for until now) and draft_rows of the plan's spans, all
  // booked, and what follows for their sequences.
  void deal(StepPlan& plan);

  // That have rows in the step at most.
  int num_branches() const;

  // Counts one running sequence in.
  void describe(const Sequence& sequence, BatchDemand& demand) const;

  // A sequence gets a slot with `exact` leading entries of its hits known to be exact.
  void restart(Sequence& sequence, int exact) const;
  // Of the first `num_ids` ids the device lacks `missing` entries. Returns the number of leading
  // entries that the page headers tell to be exact.
  int confirm(Sequence& sequence, int num_ids, int missing) const;
  // A reconciled span, whose drafts, made by `drafter`, were accepted so often. `is_likely`: a
  // look-up knows a long piece of text behind it.
  void note_lookups(const Span& span, int drafter, int num_accepted, bool is_likely) const;
  // Learns from the length of an output.
  void note_end(const Sequence& sequence);

  // Whether the sequence drafts with a drafter that has KV.
  bool keeps_entries(const Sequence& sequence) const {
    return drafts(sequence) && drafter_of(sequence).has_kv;
  }
  // Whether it drafts with one that keeps states.
  bool keeps_states(const Sequence& sequence) const {
    return drafts(sequence) && drafter_of(sequence).keeps_states;
  }
  // Whether, behind its spans so far, that one's state stands behind all scheduled tokens, none of
  // which the sequence has sampled.
  bool has_followed(const Sequence& sequence) const {
    return sequence.draft_caught_up && sequence.draft_floor == sequence.num_scheduled;
  }

 private:
  // A grant and what is left of it.
  struct DraftBudget {
    DraftGrant grant;
    int num_rows = 0;
    int num_spans = 0;
    int num_lookups = 0;
  };

  bool drafts(const Sequence& sequence) const {
    return sequence.max_draft_tokens > 0 && !sequence.pools &&
           sequence.drafter < static_cast<int>(drafters_.size());
  }
  const SchedulerDrafter& drafter_of(const Sequence& sequence) const {
    return drafters_[static_cast<size_t>(sequence.drafter)];
  }
  bool has_room(const Sequence& sequence, int lookup) const;
  int drafts_left(const Sequence& sequence, int len) const;
  int missing(const Sequence& sequence, int num_ids) const;
  int rows_wanted(const Span& span) const;
  int class_of(const Sequence& sequence, int missing) const;
  bool worth_rows(const Span& span, const DraftGrant& grant) const;
  void deal_to(Span& span, StepPlan& plan);
  void deal_lookups(Span& span, StepPlan& plan);
  bool keeps_written(const Sequence& sequence) const;
  void settle(const Span& span) const;

  const std::vector<SchedulerDrafter> drafters_;
  std::array<DraftBudget, kMaxDrafters> budgets_{};
  uint64_t num_dealt_ = 0;
  int mean_output_x16_ = 256 * 16;  // tokens of the outputs of late
  int num_outputs_ = 1;             // that this rests on
};

}  // namespace foretoken
