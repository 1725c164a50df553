#include <algorithm>

#include "spec/length_controller.h"

// What steps take, with drafts and without, as the length policy models it.

namespace foretoken {
namespace {

// Shorter steps tell of what else the host does rather than of the device.
constexpr int64_t kShortStepNs = 2'000'000;

// Of `granted` drafts, rounded, but one where a part of the sequences draft: such steps are of
// another kind than those without drafts, and last where it does not pay to catch up the others.
int drafts_each(int64_t granted, int num_seqs) {
  if (granted <= num_seqs / 8) return 0;
  return std::max(static_cast<int>((granted + num_seqs / 2) / num_seqs), 1);
}

// Entries of a step's own tokens; more are of sequences that fell behind.
int max_own_entries(int num_rows) { return 2 * num_rows; }

}  // namespace

// What the load and its drafters' passes take in each of the last kRingSize steps. Beside a prompt
// chunk its drafts cost what their rows add there; without them it counts as alone, as the chunk
// would have run anyway.
int64_t LengthController::ring_ns(const Load& load, int64_t draft_ns) const {
  const int drafts = drafts_each(load.granted, load.seqs);
  const int64_t far_ns = context_ns(load.seqs, drafts);
  const int64_t plain_far_ns = context_ns(load.seqs, 0);
  const int64_t alone = really_ns(
      load.seqs, drafts, times_.step_ns(load.seqs, load.granted, load.live) + far_ns + draft_ns);
  const int64_t without =
      really_ns(load.seqs, 0, times_.step_ns(load.seqs, 0, 0) + plain_far_ns) + draft_ns;
  const auto live = static_cast<int>(load.live);
  int64_t sum = 0;
  for (const StepRecord& record : records_) {
    const int num_prompt_rows = record.plan.num_prompt_rows;
    const int beside = num_prompt_rows + load.seqs;
    sum += num_prompt_rows == 0 ? alone
                                : without + times_.target.at(beside + live) -
                                      times_.target.at(beside) + far_ns - plain_far_ns;
  }
  return std::max<int64_t>(1, sum);
}

int64_t LengthController::context_ns(int num_seqs, int drafts) const {
  return times_.context_ns(num_seqs, drafts, num_seqs * mean_tokens_);
}

// Steps without prompts. What is caught up beside them may not be more than what they are for.
bool LengthController::tells(const PlannedStep& plan) const {
  if (plan.num_prompt_rows > 0 || plan.num_spans == 0) return false;
  return std::all_of(plan.use.begin(), plan.use.end(), [&](const DraftUse& use) {
    return use.catch_up_rows <= max_own_entries(plan.num_rows);
  });
}

// By the table, of a step without prompts, whatever it catches up beside its own tokens.
int64_t LengthController::table_ns(const StepRecord& record) const {
  const PlannedStep& plan = record.plan;
  const int granted = plan.num_rows - plan.num_spans;
  const int drafts = drafts_each(granted, plan.num_spans);
  int64_t ns = times_.step_ns(plan.num_spans, granted, record.drafts.num_live) +
               times_.context_ns(plan.num_spans, drafts, plan.num_tokens);
  for (size_t i = 0; i < grants_.size(); ++i) {
    ns += times_.draft_ns(static_cast<int>(i), plan.use[i]);
  }
  return ns - caught_up_ns(plan);
}

int64_t LengthController::caught_up_ns(const PlannedStep& plan) const {
  int64_t ns = 0;
  for (size_t i = 0; i < grants_.size(); ++i) {
    DraftUse own = plan.use[i];
    own.catch_up_rows =
        std::min(own.catch_up_rows, max_own_entries(plan.num_rows - plan.num_prompt_rows));
    const auto drafter = static_cast<int>(i);
    ns += times_.draft_ns(drafter, plan.use[i]) - times_.draft_ns(drafter, own);
  }
  return ns;
}

void LengthController::step_took(uint64_t step, int64_t ns) {
  const StepRecord& record = record_of(step);
  const PlannedStep& plan = record.plan;
  if (!adaptive() || !config_.follows_device || !tells(plan)) return;
  if (times_.step_ns(plan.num_spans, 0, 0) < kShortStepNs) return;
  const int drafts = drafts_each(plan.num_rows - plan.num_spans, plan.num_spans);
  feedback_.add(plan.num_spans, drafts, table_ns(record), ns);
}

// Times are the table's as corrected, since one step alone may have waited for something else. What
// drafts add is the table's unless both kinds of steps are known: one of them corrected beside a
// guess would stop drafts that pay.
DraftLosses::Step LengthController::costs_of(const StepRecord& record) const {
  const PlannedStep& plan = record.plan;
  const int seqs = plan.num_spans;
  const int drafts = drafts_each(plan.num_rows - seqs, seqs);
  const int64_t by_table = table_ns(record);
  const int64_t plain_by_table =
      times_.step_ns(seqs, 0, 0) + times_.context_ns(seqs, 0, plan.num_tokens);
  const int64_t plain = really_ns(seqs, 0, plain_by_table);
  const bool knows_both = feedback_.knows(seqs, 0) && feedback_.knows(seqs, drafts);
  const int64_t cost =
      knows_both ? really_ns(seqs, drafts, by_table) - plain : by_table - plain_by_table;
  return {.num_seqs = seqs,
          .plain_ns = plain,
          .step_ns = plain,
          .cost_ns = cost,
          .caught_up_ns = caught_up_ns(plan)};
}

// A token saves what it would take alone, later. Entries of prompts are computed where the tokens
// to come pay for them, and are not charged.
DraftLosses::Step LengthController::costs_beside_prompts(const StepRecord& record) const {
  const PlannedStep& plan = record.plan;
  const int rows = plan.num_prompt_rows + record.num_decoding;
  const int64_t without = times_.target.at(rows);
  int64_t cost = times_.target.at(rows + record.drafts.num_live) - without - caught_up_ns(plan);
  for (size_t i = 0; i < grants_.size(); ++i) {
    cost += times_.draft_ns(static_cast<int>(i), plan.use[i]);
  }
  return {.num_seqs = record.num_decoding,
          .plain_ns = times_.step_ns(record.num_decoding, 0, 0),
          .step_ns = without,
          .cost_ns = cost};
}

// What drafts of the step cost though none were looked up; where others may, all have some.
int64_t LengthController::trial_ns(const PlannedStep& plan) const {
  if (plan.num_prompt_rows > 0 || plan.num_spans == 0) return 0;
  const int64_t granted = plan.num_rows - plan.num_spans;
  int64_t ns = -caught_up_ns(plan);
  bool looks_up = true;
  for (size_t i = 0; i < grants_.size(); ++i) {
    ns += times_.draft_ns(static_cast<int>(i), plan.use[i]);
    looks_up = looks_up && !config_.drafters[i].has_kv;
  }
  return ns + times_.step_ns(plan.num_spans, granted, looks_up ? 0 : granted) -
         times_.step_ns(plan.num_spans, 0, 0);
}

// Of steps before `step` whose results do not count yet.
int64_t LengthController::pending_ns(uint64_t step) const {
  int64_t sum = 0;
  for (uint64_t i = num_taken_in_; i < step; ++i) sum += records_[i % kRingSize].trial_ns;
  return sum;
}

// Of `limit` drafts each, so many that the account pays for the steps until results count, though
// none were accepted, or looked up: one at least. All of a block, whose pass costs most of it.
int LengthController::trial_limit(int drafter, int limit, int num_sequences) const {
  const auto index = static_cast<size_t>(drafter);
  const bool looks_up = !config_.drafters[index].has_kv;
  if (times_.is_guess || (!looks_up && times_.drafters[index].one_pass)) return limit;
  const int seqs = std::max({num_decoding_, num_sequences, 1});
  const int64_t plain = times_.step_ns(seqs, 0, 0);
  const int64_t most =
      std::max(losses_.balance_ns({seqs, plain}), plain / 2) / static_cast<int64_t>(max_age_ + 1);
  for (; limit > 1; --limit) {
    const int64_t granted = int64_t{num_sequences} * limit;
    const DraftUse use{.num_draft_tokens = limit, .num_spans = num_sequences};
    const int64_t ns = times_.step_ns(seqs, granted, looks_up ? 0 : granted);
    if (ns + times_.draft_ns(drafter, use) - plain <= most) break;
  }
  return limit;
}

// The step's results are complete. Guessed times have no unit to keep accounts in.
void LengthController::settle(uint64_t step) {
  const StepRecord& record = record_of(step);
  if (record.plan.num_spans == 0 || times_.is_guess) return;
  DraftLosses::Step costs =
      record.plan.num_prompt_rows > 0 ? costs_beside_prompts(record) : costs_of(record);
  costs.drafts = record.drafts;
  costs.predicted = record.predicted;
  costs.is_open = record.is_open;
  costs.by_slot = record.extra;
  losses_.add(costs);
}

}  // namespace foretoken
