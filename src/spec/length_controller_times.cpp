#include <algorithm>

#include "spec/length_controller.h"

// What steps take, with drafts and without, as the length policy models it.

namespace foretoken {
namespace {

// Shorter steps tell of what else the host does rather than of the device, which is more than a
// rough table knows.
constexpr int64_t kShortStepNs = 2'000'000;

// What a short step tells of a device that computes beside the host: nothing, unless it took a
// quarter longer than the table says, as where the host bounds it. Example: a step of 16 sequences
// takes 0.2 ms on the device, with three drafts each 0.3, and the host needs 0.5 for either; the
// drafts are free.
int64_t short_step_ns(int64_t table_ns, int64_t ns) {
  return ns < table_ns + table_ns / 4 ? table_ns : ns;
}

// Of `granted` drafts, rounded, but one where a part of the sequences draft: such steps are of
// another kind than those without drafts, and last where it does not pay to catch up the others.
int drafts_each(int64_t granted, int num_seqs) {
  if (granted <= num_seqs / 8) return 0;
  return std::max(static_cast<int>((granted + num_seqs / 2) / num_seqs), 1);
}

// What first tries may lose: a step, and two more where sequences are few, whose results scatter.
int64_t first_tries_ns(int num_seqs, int64_t plain_ns) {
  return plain_ns + std::min(plain_ns * 16 / num_seqs, plain_ns * 2);
}

// Entries of a step's own tokens; more are of sequences that fell behind.
int max_own_entries(int num_rows) { return 2 * num_rows; }

}  // namespace

// What the load and its drafters' passes take in each of the last kRingSize steps. Beside a prompt
// chunk its drafts cost what their rows add there; without them it counts as alone, as the chunk
// would have run anyway.
int64_t LengthController::ring_ns(const Load& load, int64_t draft_ns) const {
  const int drafts = drafts_each(load.granted, load.seqs);
  const int64_t step_ns = times_.step_ns(load.seqs, load.granted, load.live);
  const int64_t plain_step_ns = times_.step_ns(load.seqs, 0, 0);
  const int64_t far_ns = context_ns(load.seqs, drafts, step_ns);
  const int64_t plain_far_ns = context_ns(load.seqs, 0, plain_step_ns);
  const int64_t alone = really_ns(load.seqs, drafts, step_ns + far_ns + draft_ns);
  const int64_t without = really_ns(load.seqs, 0, plain_step_ns + plain_far_ns) + draft_ns;
  // What short contexts spare of a step without prompts says nothing of rows beside one.
  const int64_t far_rows_ns = far_ns > 0 ? far_ns - plain_far_ns : 0;
  const auto live = static_cast<int>(load.live);
  int64_t sum = 0;
  for (const StepRecord& record : records_) {
    const int num_prompt_rows = record.plan.num_prompt_rows;
    const int beside = num_prompt_rows + load.seqs;
    sum += num_prompt_rows == 0
               ? alone
               : without + times_.target.at(beside + live) - times_.target.at(beside) + far_rows_ns;
  }
  return std::max<int64_t>(1, sum);
}

int64_t LengthController::context_ns(int num_seqs, int drafts, int64_t step_ns) const {
  return times_.context_ns(num_seqs, drafts, num_seqs * mean_tokens_, step_ns);
}

// Steps without prompts. What is caught up beside them may not be more than what they are for.
bool LengthController::tells(const PlannedStep& plan) const {
  if (plan.num_prompt_rows > 0 || plan.num_spans == 0) return false;
  return std::all_of(plan.use.begin(), plan.use.end(), [&](const DraftUse& use) {
    return use.catch_up_rows <= max_own_entries(plan.num_rows);
  });
}

// By the table, of a step without prompts.
int64_t LengthController::table_ns(const StepRecord& record) const {
  const PlannedStep& plan = record.plan;
  const int granted = plan.num_rows - plan.num_spans;
  const int drafts = drafts_each(granted, plan.num_spans);
  const int64_t step_ns = times_.step_ns(plan.num_spans, granted, record.num_live);
  int64_t ns = step_ns + times_.context_ns(plan.num_spans, drafts, plan.num_tokens, step_ns);
  ns += times_.target.at(plan.num_rows + plan.num_branch_rows) - times_.target.at(plan.num_rows);
  for (size_t i = 0; i < grants_.size(); ++i) {
    ns += times_.draft_ns(static_cast<int>(i), plan.use[i], plan.num_tokens / plan.num_spans);
  }
  return ns;
}

void LengthController::step_took(uint64_t step, int64_t ns) {
  const StepRecord& record = record_of(step);
  const PlannedStep& plan = record.plan;
  if (adaptive() && config_.follows_device)
    trials_.step_ended(record.is_trial, ns, plain_ns(plan.num_spans));
  if (!adaptive() || !config_.follows_device || !tells(plan)) return;
  const bool is_short = !times_.is_rough() && times_.step_ns(plan.num_spans, 0, 0) < kShortStepNs;
  if (is_short && !config_.host_may_bound) return;
  const int drafts = drafts_each(plan.num_rows - plan.num_spans, plan.num_spans);
  const int64_t by_table = table_ns(record);
  feedback_.add(plan.num_spans, drafts, by_table, is_short ? short_step_ns(by_table, ns) : ns);
}

// A step without drafts.
int64_t LengthController::plain_ns(int num_seqs) const {
  const int64_t step_ns = times_.step_ns(num_seqs, 0, 0);
  return really_ns(num_seqs, 0, step_ns + context_ns(num_seqs, 0, step_ns));
}

// What a trial of `limit` drafts each loses by the table in a step, or where that is less, if each
// of its rows takes as long as the first: no row takes longer.
int64_t LengthController::trial_loss_ns(int drafter, int limit, int num_sequences) const {
  const int64_t plain = plain_ns(num_decoding_);
  const auto& traits = config_.drafters[static_cast<size_t>(drafter)];
  const int64_t rows = int64_t{num_sequences} * limit;
  const DraftUse use{.num_draft_tokens = limit,
                     .catch_up_rows = traits.has_kv ? num_sequences * (limit + 1) : 0,
                     .num_spans = num_sequences};
  const int64_t by_table =
      times_.step_ns(num_decoding_, rows, rows) + times_.draft_ns(drafter, use);
  return std::clamp<int64_t>(by_table - plain, 0, 2 * plain * limit);
}

// More drafts than `limit`, of which nothing is known and which would gain by more than an eighth
// if they cost nothing more. 0: none.
int LengthController::untried_limit(int drafter, const State& state, int limit,
                                    int num_sequences) const {
  const int most = config_.drafters[static_cast<size_t>(drafter)].max_draft_tokens;
  constexpr int64_t kOne = BatchRates::kOne;
  const int64_t tokens = kOne + state.rates.expected_drafts(limit);
  for (int more = limit + 1; more <= most; ++more) {
    const int each = drafts_each(int64_t{num_sequences} * more, num_decoding_);
    if (each == 0 || feedback_.knows(num_decoding_, each)) continue;
    if (kOne + state.rates.expected_drafts(more) > tokens + tokens / 8) return more;
  }
  return 0;
}

// Of `limit` drafts each, so many that steps lose few plain ones until results count, though none
// were accepted, or looked up: one at least. All of a block, whose pass costs most of it.
int LengthController::trial_limit(int drafter, int limit, int num_sequences) const {
  const auto index = static_cast<size_t>(drafter);
  const bool looks_up = config_.drafters[index].looks_up;
  if (times_.is_guess || (!looks_up && times_.drafters[index].one_pass)) return limit;
  const int seqs = std::max({num_decoding_, num_sequences, 1});
  const int64_t plain = times_.step_ns(seqs, 0, 0);
  const int64_t most = first_tries_ns(seqs, plain) / static_cast<int64_t>(max_age_ + 1);
  for (; limit > 1; --limit) {
    const int64_t granted = int64_t{num_sequences} * limit;
    const DraftUse use{.num_draft_tokens = limit, .num_spans = num_sequences};
    const int64_t ns = times_.step_ns(seqs, granted, looks_up ? 0 : granted);
    if (ns + times_.draft_ns(drafter, use) - plain <= most) break;
  }
  return limit;
}

}  // namespace foretoken
