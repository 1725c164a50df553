#include "spec/policy_world.h"

#include <algorithm>

namespace foretoken {
namespace {

SchedulerConfig scheduler_config(const LengthControllerConfig& policy,
                                 const PolicyWorld::Workload& workload) {
  int longest = 0;
  for (int i = 0; i < workload.num_requests; ++i) {
    longest = std::max(longest, workload.length_of(i));
  }
  const int blocks_each = (workload.prompt_len + longest) / 16 + 2;
  SchedulerConfig config;
  config.num_blocks = blocks_each * workload.batch + 1;
  config.block_size = 16;
  config.max_num_seqs = workload.batch;
  config.max_num_batched_tokens = workload.max_num_batched_tokens;
  config.prefix_caching = false;
  for (const auto& drafter : policy.drafters) {
    config.drafters.push_back({.looks_up = drafter.looks_up,
                               .has_kv = drafter.has_kv,
                               .keeps_written = drafter.keeps_written});
  }
  return config;
}

}  // namespace

PolicyWorld::PolicyWorld(const CostTable& times, const LengthControllerConfig& policy,
                         const Workload& workload)
    : times_(times),
      config_(policy),
      workload_(workload),
      policy_(policy, times),
      scheduler_(scheduler_config(policy, workload)) {
  for (int i = 0; i < workload.num_requests; ++i) num_wanted_ += workload.length_of(i);
}

int PolicyWorld::Workload::length_of(int index) const {
  if (length) return length(index);
  return std::max(1, output_len - index % 8 * output_len / 16);
}

PolicyWorld::Totals PolicyWorld::run() {
  for (int i = 0; i < workload_.batch; ++i) submit();
  while (num_running_ > 0) {
    const bool planned = plan();
    const bool full = static_cast<int>(in_flight_.size()) == config_.steps_in_flight;
    if (!in_flight_.empty() && (full || !planned)) finish_step();
  }
  while (!in_flight_.empty()) finish_step();
  return totals_;
}

void PolicyWorld::submit() {
  if (num_submitted_ == workload_.num_requests) return;
  auto sequence = std::make_unique<Sequence>();
  sequence->prompt_len = workload_.prompt_len;
  sequence->max_len = workload_.prompt_len + workload_.length_of(num_submitted_);
  if (workload_.runs_to_the_end) sequence->min_len = sequence->max_len;
  sequence->max_draft_tokens = config_.drafters[0].max_draft_tokens;
  sequence->tokens.assign(static_cast<size_t>(workload_.prompt_len), 1);
  scheduler_.add(*sequence);
  sequences_.push_back(std::move(sequence));
  ++num_submitted_;
  ++num_running_;
}

bool PolicyWorld::plan() {
  scheduler_.describe(demand_);
  const auto grants = policy_.decide(num_planned_, demand_);
  StepPlan plan;
  if (!scheduler_.plan(plan, grants)) return false;
  policy_.planned(num_planned_, {.num_spans = static_cast<int>(plan.spans.size()),
                                 .num_rows = plan.num_rows,
                                 .num_prompt_rows = plan.num_new_ids,
                                 .use = plan.drafts,
                                 .num_tokens = plan.known_tokens()});
  totals_.limits.push_back(grants[0].num_draft_tokens);
  Step step{num_planned_++, {}, plan.drafts[0]};
  for (const Span& span : plan.spans) {
    const bool drafts = static_cast<int>(span.sequence->arrival % 8) < workload_.drafting;
    step.work.push_back({span, drafts ? span.max_verified : 0});
  }
  in_flight_.push_back(std::move(step));
  return true;
}

// Returns the rows that ran.
int64_t PolicyWorld::run_span(const Work& work, uint64_t number) {
  const Span& span = work.span;
  Sequence& sequence = *span.sequence;
  std::vector<int32_t> ids;
  int num_draft_tokens = 0;
  bool ended = sequence.state == SequenceState::kFinished;
  if (!ended && span.samples) {
    const int room = sequence.max_len - sequence.known_len();
    num_draft_tokens = std::min(work.standing, room - 1);
    int num_accepted = 0;
    std::uniform_real_distribution<double> draw(0, 1);
    const auto percent = static_cast<int>(totals_.num_tokens * 100 / num_wanted_);
    while (num_accepted < num_draft_tokens &&
           draw(random_) < workload_.acceptance(percent, num_accepted)) {
      ++num_accepted;
    }
    ids.assign(static_cast<size_t>(num_accepted + 1), 1);
    ended = sequence.known_len() + num_accepted + 1 == sequence.max_len;
    policy_.observe(number, 0, span.max_verified, num_draft_tokens, num_accepted);
    totals_.num_tokens += num_accepted + 1;
    totals_.num_drafted += num_draft_tokens;
    totals_.num_accepted += num_accepted;
  }
  const SequenceEvent event =
      scheduler_.reconcile(span, {.ids = ids, .ended = ended, .draft_missing = sequence.max_len});
  if (event == SequenceEvent::kReleased) {
    --num_running_;
    submit();
  }
  return span.num_tokens + num_draft_tokens;
}

void PolicyWorld::finish_step() {
  const Step step = std::move(in_flight_.front());
  in_flight_.pop_front();
  int64_t num_rows = 0;
  int64_t granted = 0;
  bool decodes = true;
  for (const Work& work : step.work) {
    num_rows += run_span(work, step.number);
    granted += work.span.max_verified;
    decodes = decodes && work.span.first_new_id < 0;
  }
  const auto num_spans = static_cast<int>(step.work.size());
  int64_t ns = decodes ? times_.step_ns(num_spans, granted, num_rows - num_spans)
                       : times_.target.at(static_cast<int>(num_rows));
  ns += times_.draft_ns(0, step.use);
  if (workload_.really) ns = workload_.really(num_spans, static_cast<int>(granted), ns);
  totals_.ns += ns;
  policy_.step_took(step.number, ns);
  totals_.num_caught_up += step.use.catch_up_rows;
  ++totals_.num_steps;
}

}  // namespace foretoken
