#include <algorithm>

#include "sched/prompt_share.h"
#include "sched/scheduler.h"
#include "sched/time_bound.h"

// How many rows of prompts a step has.

namespace foretoken {
namespace {

// A client that asks again at once is not gone.
constexpr int kPlansAfterOthers = 8;

}  // namespace

// Still in its prompt, which is long; one that was preempted counts by all that it must compute.
bool Scheduler::is_paced(const Sequence& sequence) const {
  return config_.paced_prompt_len > 0 && !sequence.caught_up &&
         sequence.known_len() > config_.paced_prompt_len;
}

// Among others, paced prompts share what is granted to them; where they are more, they get more.
// Whoever sends a short prompt is expected to come again; a sequence all of whose rows are in
// flight waits for none of those to come. Example: prompts of more than 1,000 tokens are paced, and
// 512 rows a step are granted to them beside others. With 6 sequences that decode and 2 long
// prompts each of these gets 512 / 2 = 256 rows; with one that decodes and 4 prompts each gets 512,
// since more sequences wait for these rows than are held up by them. Where nobody else is left, and
// for kPlansAfterOthers plans nobody with a short prompt was, they share paced.alone.
// Beside sequences that decode a bound takes the place of paced.beside, half of it where prompts
// that are not paced want rows, too; so does what prompt_share says, beside any others.
void Scheduler::pace(StepPlan& plan, PacedRows paced) {
  paced_rows_ = 0;
  bound_rows_ = config_.max_num_batched_tokens;
  is_bound_ = is_shared_ = false;
  favoured_ = nullptr;
  if (paced.bound != nullptr) {
    bound_prompts(plan, *paced.bound);
  } else if (config_.share_rows > 0) {
    share_prompts();
  }
  if (config_.paced_prompt_len == 0) return;
  int num_paced = 0, num_others = 0, num_short = 0, num_other_prompts = 0;
  const auto count = [&](const Sequence& sequence) {
    if (is_paced(sequence)) {
      ++num_paced;
    } else if (!sequence.caught_up || sequence.len_floor() < sequence.max_len) {
      ++num_others;
      num_other_prompts += sequence.caught_up ? 0 : 1;
      num_short += sequence.prompt_len <= config_.paced_prompt_len ? 1 : 0;
    }
  };
  for (const Sequence* sequence : running_) count(*sequence);
  if (!waiting_.empty() && !free_slots_.empty()) count(*waiting_.front());
  paces_beside_ = num_short > 0 ? kPlansAfterOthers : std::max(paces_beside_ - 1, 0);
  if (num_paced == 0) return;
  if (is_bound_) paced.beside = std::max(num_other_prompts > 0 ? bound_rows_ / 2 : bound_rows_, 1);
  if ((num_others > 0 || paces_beside_ > 0 || is_bound_) && paced.beside > 0) {
    plan.paced_limit = paced.beside;
    const int sharing = is_shared_ ? num_paced : std::min(num_paced, std::max(num_others, 1));
    paced_rows_ = std::max(1, paced.beside / sharing);
    if (is_shared_ && num_paced > 1) favour_shortest(num_paced);
  } else if (paced.alone > 0) {
    paced_rows_ = std::max(1, paced.alone / num_paced);
  }
}

// Nobody waits for his next token where nobody decodes. A sequence that rests waits, too, though
// its rows are not this step's.
void Scheduler::bound_prompts(StepPlan& plan, const TimeBound& bound) {
  for (const Sequence* sequence : running_) {
    if (!sequence->caught_up) {
      plan.load.prefix_len = std::max(plan.load.prefix_len, sequence->num_scheduled);
    }
    if (!sequence->caught_up || sequence->len_floor() >= sequence->max_len) continue;
    is_bound_ = true;
    if (sits_out(*sequence)) continue;
    ++plan.load.num_seqs;
    plan.load.num_draft_tokens += std::min(sequence->max_draft_tokens, sequence->draft_bound);
    plan.load.num_tokens += sequence->len_floor();
  }
  if (is_bound_) bound_rows_ = bound.prompt_rows(plan.load);
}

// Nothing is bound for a prompt that is alone. The first one that waits stands for all that do.
void Scheduler::share_prompts() {
  PromptDemand demand;
  const int num_waiting = std::min(waiting_.size(), num_free_slots());
  int num_prompts = num_waiting;
  bool others_decode = false;
  const auto count_rows = [&](int rows, int num) {
    const int most = config_.paced_prompt_len > 0 ? config_.paced_prompt_len : rows;
    demand.pending_rows += int64_t{rows} * num;
    demand.queued_rows += int64_t{std::min(rows, most)} * num;
  };
  if (num_waiting > 0) count_rows(waiting_.front()->known_len(), num_waiting);
  for (const Sequence* sequence : running_) {
    if (!sequence->caught_up) {
      count_rows(sequence->known_len() - sequence->num_scheduled, 1);
      demand.prefix_len = std::max(demand.prefix_len, sequence->num_scheduled);
      ++num_prompts;
    } else if (sequence->len_floor() < sequence->max_len) {
      others_decode = true;
      if (sits_out(*sequence)) continue;
      ++demand.num_decoding;
      demand.decoding_rows += 1 + std::min(sequence->max_draft_tokens, sequence->draft_bound);
    }
  }
  is_bound_ = is_shared_ = num_prompts > (others_decode ? 0 : 1);
  if (!is_bound_) return;
  bound_rows_ = prompt_share(demand, config_.share_rows, config_.max_num_batched_tokens);
}

// Prompts end earlier in the mean where the one that lacks least goes first. A quarter is left, so
// that the others go on, too.
void Scheduler::favour_shortest(int num_paced) {
  const auto missing = [](const Sequence& sequence) {
    return sequence.known_len() - sequence.num_scheduled;
  };
  for (const Sequence* sequence : running_) {
    if (!is_paced(*sequence)) continue;
    if (favoured_ == nullptr || missing(*sequence) < missing(*favoured_)) favoured_ = sequence;
  }
  if (favoured_ == nullptr) return;
  const int all = paced_rows_ * num_paced;
  favoured_rows_ = std::min(std::max(all - all / 4, 1), missing(*favoured_));
  paced_rows_ = std::max(1, (all - favoured_rows_) / (num_paced - 1));
}

// A chunk without what it has beyond whole waves of the device's products, where that is little and
// others take a step anyway. Example: waves are of 1,024 rows, and 16 sequences decode beside a
// prompt of 1,030 tokens. Its chunk is of 1,008, and the other 22 are in the next step, whose 38
// rows take as long as the 16 would.
int Scheduler::whole_waves(int chunk, const StepPlan& plan) const {
  constexpr int kWorthAWave = 4;  // more than a quarter of it
  const int others = plan.num_rows + num_behind(plan);
  if (config_.wave_rows == 0 || is_shared_) return chunk;
  if (others == 0 || others + chunk < config_.wave_rows) return chunk;
  const int beyond = (others + chunk) % config_.wave_rows;
  return beyond <= config_.wave_rows / kWorthAWave && beyond < chunk ? chunk - beyond : chunk;
}

// Rows of one prompt: beside others a long one must not fill whole steps, and several together
// leave a row to every sequence behind them. None where a bound leaves none.
int Scheduler::chunk_budget(const Sequence& sequence, const StepPlan& plan) const {
  const bool others = num_running() > 1 || (!waiting_.empty() && !free_slots_.empty());
  int most = others ? config_.long_prefill_token_threshold : 0;
  if (is_paced(sequence)) {
    most = paced_rows_ > 0 ? paced_rows_ : others ? config_.paced_prompt_len : 0;
    if (&sequence == favoured_) most = favoured_rows_;
  }
  const int missing = sequence.known_len() - sequence.num_scheduled;
  const int budget = prompt_budget(plan);
  if (budget <= 0) return 0;
  if (most == 0 || missing <= most) return budget;
  return std::max(1, std::min({most, budget, row_budget(plan) - num_behind(plan)}));
}

// Branches get rows that are left, each as many as the span with the most drafts.
void Scheduler::plan_branches(StepPlan& plan) const {
  int most = 0;
  for (const Span& span : plan.spans) most = std::max(most, span.max_verified);
  if (most == 0) return;
  const int rows_each = 1 + most;
  plan.num_branches = std::min(
      {drafts_.num_branches(), row_budget(plan) / rows_each, logits_budget(plan) / rows_each});
  if (plan.num_branches == 0) return;
  plan.features |= kHasBranches;
  plan.num_branch_rows = plan.num_branches * rows_each;
  plan.num_rows += plan.num_branch_rows;
  plan.num_logits_rows += plan.num_branch_rows;
}

}  // namespace foretoken
