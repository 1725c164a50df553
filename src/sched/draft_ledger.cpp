#include "sched/draft_ledger.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr int kNumTurns = 4;
constexpr int kOutputMemory = 16;  // outputs that their mean length is taken of

bool is_ready(const Span& span) { return span.first_new_id < 0 && span.sequence->draft_caught_up; }

int turn_of(const Span& span) {
  if (span.first_new_id < 0) return is_ready(span) ? 0 : 1;
  return span.samples ? 2 : 3;
}

}  // namespace

void DraftLedger::open(std::span<const DraftGrant> grants) {
  FT_CHECK(grants.size() <= drafters_.size() && grants.size() <= budgets_.size());
  budgets_ = {};
  for (size_t i = 0; i < grants.size(); ++i) {
    budgets_[i] = {grants[i], grants[i].catch_up_rows, grants[i].max_spans, grants[i].max_lookups};
  }
}

// Of those that gain too little each is tried now and then.
bool DraftLedger::has_room(const Sequence& sequence, int lookup) const {
  const DraftGrant& grant = budgets_[static_cast<size_t>(lookup)].grant;
  const bool is_listed = sequence.drafter != lookup;
  const int least = is_listed ? grant.min_listed_class : grant.min_class;
  if (sequence.is_predicted || LookupGain::class_of(sequence.lookup_gain) >= least) return true;
  const auto turn = static_cast<uint64_t>(LookupGain::turn_of(least, grant.others_come));
  return (sequence.arrival + num_dealt_) % turn == 0;
}

void DraftLedger::note_lookups(const Span& span, int drafter, int num_accepted,
                               bool is_likely) const {
  Sequence& sequence = *span.sequence;
  if (is_likely && !sequence.lookup_is_likely) {
    sequence.lookup_gain = std::max(sequence.lookup_gain, LookupGain::kFound);
  }
  sequence.lookup_is_likely = is_likely;
  if (!span.had_lookups) return;
  const bool is_lookup = sequence.lookups == 0 || (sequence.lookups >> drafter & 1) != 0;
  const int rise = (is_lookup ? num_accepted * LookupGain::kOne : 0) - sequence.lookup_gain;
  sequence.lookup_gain += rise / (rise > 0 ? LookupGain::kRisingMemory : LookupGain::kMemory);
}

// Drafts that a sequence of `len` tokens can have verified next.
int DraftLedger::drafts_left(const Sequence& sequence, int len) const {
  const int64_t by_drafter = int64_t{drafter_of(sequence).max_len} - len + 1;
  return static_cast<int>(std::min<int64_t>(sequence.max_len - len - 1, by_drafter));
}

int DraftLedger::hoped_limit(const Sequence& sequence) const {
  if (!drafts(sequence)) return 0;
  if (drafter_of(sequence).looks_up && !has_room(sequence, sequence.drafter)) return 0;
  const int granted = budgets_[static_cast<size_t>(sequence.drafter)].grant.num_draft_tokens;
  const int left = drafts_left(sequence, sequence.len_floor() + 1);
  return std::max(0, std::min({granted, sequence.max_draft_tokens, left}));
}

int DraftLedger::hoped_lookups(const Sequence& sequence) const {
  if (!drafts(sequence) || sequence.lookups == 0) return 0;
  int granted = 0;
  for (size_t i = 0; i < drafters_.size(); ++i) {
    if ((sequence.lookups >> i & 1) == 0 || budgets_[i].num_spans <= 0) continue;
    if (!has_room(sequence, static_cast<int>(i))) continue;
    granted = std::max(granted, budgets_[i].grant.num_draft_tokens);
  }
  const int left = sequence.max_len - sequence.len_floor() - 2;
  return std::max(0, std::min({granted, sequence.max_draft_tokens, left}));
}

// What a look-up drafted was never fed to the drafter behind it.
bool DraftLedger::keeps_written(const Sequence& sequence) const {
  return drafter_of(sequence).keeps_written && sequence.lookups == 0;
}

int DraftLedger::positions_ahead(const Sequence& sequence, int num_draft_tokens) const {
  if (num_draft_tokens == 0 || !keeps_entries(sequence)) return 0;
  const int fixed = drafter_of(sequence).entries_ahead;
  return fixed > 0 ? fixed : num_draft_tokens - 1;
}

int DraftLedger::max_positions_ahead() const {
  int most = 0;
  for (size_t i = 0; i < drafters_.size(); ++i) {
    const int granted = budgets_[i].grant.num_draft_tokens;
    if (granted > 0) most = std::max({most, granted - 1, drafters_[i].entries_ahead});
  }
  return most;
}

// What the turns look at changes only when all had theirs.
void DraftLedger::deal(StepPlan& plan) {
  for (int turn = 0; turn < kNumTurns; ++turn) {
    for (Span& span : plan.spans) {
      if (turn_of(span) == turn) deal_to(span, plan);
    }
  }
  for (Span& span : plan.spans) deal_lookups(span, plan);
  for (const Span& span : plan.spans) settle(span);
  ++num_dealt_;
}

// Entries before `num_ids` that may be missing.
int DraftLedger::missing(const Sequence& sequence, int num_ids) const {
  const int end = std::min(num_ids, drafter_of(sequence).max_len);
  return std::max(0, end - sequence.draft_floor);
}

// Entries that a booked span lacks at most once its step has committed.
int DraftLedger::rows_wanted(const Span& span) const {
  const Sequence& sequence = *span.sequence;
  const int lacks = missing(sequence, span.samples ? sequence.len_bound() : sequence.num_scheduled);
  if (!is_ready(span)) return lacks;
  // Of the accepted drafts and the id behind them; a drafter that keeps what it wrote lacks that id
  // and, as it is never fed, the last draft.
  const int fresh = span.max_verified + 1;
  return std::min(lacks, keeps_written(sequence) ? std::min(fresh, 2) : fresh);
}

int DraftLedger::class_of(const Sequence& sequence, int missing) const {
  const int len = sequence.len_floor();
  const int guess = std::max(len - sequence.prompt_len, mean_output_x16_ / 16);
  const int to_come =
      std::clamp(guess, std::max(0, sequence.min_len - len), std::max(0, sequence.max_len - len));
  for (int i = 0; i < kNumCatchUpClasses - 1; ++i) {
    if (int64_t{missing} * 16 <= int64_t{to_come} << i) return i;
  }
  return kNumCatchUpClasses - 1;
}

bool DraftLedger::worth_rows(const Span& span, const DraftGrant& grant) const {
  const Sequence& sequence = *span.sequence;
  // To the end, so that its last block is complete for those that hit it.
  if (is_ready(span)) return true;
  const int known = std::max(sequence.known_len(), sequence.len_floor());
  if (drafts_left(sequence, span.samples ? known : known + 1) <= 0) return false;
  const int lacks = span.samples ? rows_wanted(span) : missing(sequence, known);
  return lacks <= grant.max_missing || class_of(sequence, lacks) <= grant.max_class;
}

// Example: 64 rows are granted, 3 drafts each, classes up to 4. A sequence whose last step had 3
// drafts is ready: it gets the 4 rows that it lacks at most, and drafts. One that lacks 90 entries,
// with 40 tokens to come, is of class 6 (90 * 16 <= 40 << 6) and is left alone; with 400 to come it
// is of class 2, gets the 60 rows that are left and, being 30 short, no drafts before the next
// step.
void DraftLedger::deal_to(Span& span, StepPlan& plan) {
  const Sequence& sequence = *span.sequence;
  if (!drafts(sequence)) return;
  DraftBudget& budget = budgets_[static_cast<size_t>(sequence.drafter)];
  const bool has_kv = drafter_of(sequence).has_kv;
  const int wanted = has_kv ? rows_wanted(span) : 0;
  if (budget.num_spans > 0 && (!has_kv || worth_rows(span, budget.grant))) {
    span.draft_rows = std::min(wanted, budget.num_rows);
  } else {
    span.num_draft_tokens = 0;
  }
  if (span.draft_rows < wanted) span.num_draft_tokens = 0;
  if (span.draft_rows == 0 && span.num_draft_tokens == 0) return;
  budget.num_rows -= span.draft_rows;
  --budget.num_spans;
  DraftUse& use = plan.drafts[static_cast<size_t>(sequence.drafter)];
  use.num_draft_tokens = std::max(use.num_draft_tokens, span.num_draft_tokens);
  use.catch_up_rows += span.draft_rows;
  if (span.num_draft_tokens > 0) {
    ++use.num_spans;
    use.num_branches = budget.grant.num_branches;
  }
}

int DraftLedger::num_branches() const {
  int most = 0;
  for (const DraftBudget& budget : budgets_) most = std::max(most, budget.grant.num_branches);
  return most;
}

void DraftLedger::deal_lookups(Span& span, StepPlan& plan) {
  int most = 0;
  for (size_t i = 0; i < drafters_.size(); ++i) {
    DraftBudget& budget = budgets_[i];
    const int granted = std::min(budget.grant.num_draft_tokens, span.num_lookup_tokens);
    if ((span.sequence->lookups >> i & 1) == 0 || granted == 0 || budget.num_lookups == 0) continue;
    if (!has_room(*span.sequence, static_cast<int>(i))) continue;
    --budget.num_lookups;
    most = std::max(most, granted);
    DraftUse& use = plan.drafts[i];
    use.num_draft_tokens = std::max(use.num_draft_tokens, granted);
    ++use.num_spans;
  }
  span.num_lookup_tokens = most;
}

void DraftLedger::settle(const Span& span) const {
  Sequence& sequence = *span.sequence;
  sequence.draft_bound = std::max(span.num_draft_tokens, span.num_lookup_tokens);
  const bool looks_up = drafts(sequence) && drafter_of(sequence).looks_up;
  sequence.had_lookups = span.num_lookup_tokens > 0 || (looks_up && sequence.draft_bound > 0);
  if (!keeps_entries(sequence)) return;
  const bool caught_up = span.draft_rows == rows_wanted(span);
  const int known = span.samples ? sequence.sure_len() : sequence.num_scheduled;
  const int end = std::min(known, drafter_of(sequence).max_len);
  const int floor = caught_up ? end : std::min(end, sequence.draft_floor + span.draft_rows);
  sequence.draft_floor = std::max(sequence.draft_floor, floor);
  sequence.draft_caught_up = caught_up;
}

void DraftLedger::describe(const Sequence& sequence, BatchDemand& demand) const {
  const int len = sequence.len_floor();
  if (sequence.caught_up && len >= sequence.max_len) return;
  if (sequence.caught_up) ++demand.num_decoding;
  ++demand.num_counted;
  demand.num_tokens += std::max(len, sequence.prompt_len);
  if (!drafts(sequence)) return;
  const auto gain_class = static_cast<size_t>(LookupGain::class_of(sequence.lookup_gain));
  for (size_t i = 0; i < drafters_.size() && sequence.caught_up; ++i) {
    if ((sequence.lookups >> i & 1) == 0) continue;
    ++demand.drafters[i].num_listed;
    ++demand.drafters[i].num_listed_gaining[gain_class];
  }
  if (drafts_left(sequence, len + 1) <= 0) return;
  DraftDemand& own = demand.drafters[static_cast<size_t>(sequence.drafter)];
  if (sequence.is_predicted) {
    ++own.num_predicted;
    return;
  }
  if (!sequence.caught_up) {
    ++own.num_coming;
    return;
  }
  ++own.num_decoding;
  ++own.num_gaining[gain_class];
  if (!drafter_of(sequence).has_kv || sequence.draft_caught_up) {
    ++own.num_ready;
    return;
  }
  const int most =
      sequence.len_bound() + std::min(sequence.max_draft_tokens, sequence.draft_bound) + 1;
  const int lacks = missing(sequence, std::min(most, sequence.max_len));
  const auto index = static_cast<size_t>(class_of(sequence, lacks));
  ++own.num_resting[index];
  own.num_missing[index] += lacks;
  own.fewest_missing = own.fewest_missing == 0 ? lacks : std::min(own.fewest_missing, lacks);
}

void DraftLedger::restart(Sequence& sequence, int exact) const {
  sequence.draft_bound = 0;
  sequence.had_lookups = false;
  sequence.draft_caught_up = false;
  sequence.draft_floor = keeps_entries(sequence) ? exact : 0;
}

int DraftLedger::confirm(Sequence& sequence, int num_ids, int missing) const {
  if (!keeps_entries(sequence)) return 0;
  const int exact = std::clamp(num_ids - missing, 0, num_ids);
  sequence.draft_floor = std::max(sequence.draft_floor, exact);
  return exact;
}

void DraftLedger::note_end(const Sequence& sequence) {
  if (sequence.pools) return;
  num_outputs_ = std::min(num_outputs_ + 1, kOutputMemory);
  const int output = sequence.known_len() - sequence.prompt_len;
  mean_output_x16_ += (output * 16 - mean_output_x16_) / num_outputs_;
}

}  // namespace foretoken
