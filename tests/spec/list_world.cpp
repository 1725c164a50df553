#include "spec/list_world.h"

#include <algorithm>
#include <bit>

#include "spec/draft_choice.h"
#include "spec/length_choice.h"

namespace foretoken {
namespace {

SchedulerConfig list_scheduler_config(const ListWorld::Workload& workload) {
  SchedulerConfig config;
  config.block_size = 16;
  config.num_blocks =
      ((workload.prompt_len + workload.output_len + 4 * workload.output_step) / 16 + 6) *
          workload.batch +
      1;
  config.max_num_seqs = workload.batch;
  config.max_num_batched_tokens = 8192;
  config.prefix_caching = false;
  config.drafters = workload.drafters;
  return config;
}

}  // namespace

ListWorld::ListWorld(const CostTable& times, const LengthControllerConfig& policy,
                     const Workload& workload)
    : times_(times),
      config_(policy),
      workload_(workload),
      policy_(policy, times),
      scheduler_(list_scheduler_config(workload)),
      slots_(static_cast<size_t>(std::max(workload.requests, workload.batch))) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = i;
    sequence->prompt_len = workload.prompt_len;
    sequence->max_len = sequence->min_len =
        workload.prompt_len + workload.output_len + static_cast<int>(i % 5) * workload.output_step;
    sequence->drafter = workload.last;
    sequence->lookups = workload.lookups & ~(1u << workload.last);
    for (const auto& drafter : policy.drafters) {
      sequence->max_draft_tokens = std::max(sequence->max_draft_tokens, drafter.max_draft_tokens);
    }
    sequence->tokens.assign(static_cast<size_t>(workload.prompt_len), 1);
    slots_[i].len = workload.prompt_len;
    scheduler_.add(*sequence);
    sequences_.push_back(std::move(sequence));
    ++num_running_;
  }
}

ListWorld::Totals ListWorld::run() {
  while (num_running_ > 0) {
    const bool planned = plan();
    const bool full = static_cast<int>(in_flight_.size()) == config_.steps_in_flight;
    if (!in_flight_.empty() && (full || !planned)) finish_step();
  }
  while (!in_flight_.empty()) finish_step();
  return totals_;
}

bool ListWorld::plan() {
  scheduler_.describe(demand_);
  const auto grants = policy_.decide(num_planned_, demand_);
  StepPlan plan;
  if (!scheduler_.plan(plan, grants)) return false;
  policy_.planned(num_planned_, {.num_spans = static_cast<int>(plan.spans.size()),
                                 .num_rows = plan.num_rows,
                                 .num_prompt_rows = plan.num_new_ids,
                                 .use = plan.drafts,
                                 .num_tokens = plan.known_tokens()});
  in_flight_.push_back({num_planned_++, plan.spans, plan.drafts, {}});
  return true;
}

void ListWorld::finish_step() {
  Step step = std::move(in_flight_.front());
  in_flight_.pop_front();
  for (const Span& span : step.spans) step.results.push_back(verify(span));
  const int num_drafters = static_cast<int>(config_.drafters.size());
  for (const bool turn_of_lookups : {true, false}) {
    for (int drafter = 0; drafter < num_drafters; ++drafter) {
      const DraftUse& use = step.use[static_cast<size_t>(drafter)];
      if (looks_up(drafter) != turn_of_lookups || use.num_draft_tokens + use.catch_up_rows == 0)
        continue;
      learn(drafter, step);
      propose(drafter, step);
    }
  }
  const int64_t ns = step_ns(step);
  reconcile(step);
  totals_.ns += ns;
  ++totals_.num_steps;
  policy_.step_took(step.number, ns);
}

ListWorld::Result ListWorld::verify(const Span& span) {
  const Sequence& sequence = *span.sequence;
  Slot& slot = slots_[sequence.id];
  Result result{.slot = &slot, .drafter = slot.drafter};
  if (slot.len >= sequence.max_len || !span.samples) return result;
  result.num_drafted =
      std::min({slot.num_draft_tokens, span.max_verified, sequence.max_len - slot.len - 1});
  while (result.num_accepted < result.num_drafted && accepts_next(sequence, result)) {
    ++result.num_accepted;
  }
  totals_.num_drafted += result.num_drafted;
  result.num_committed = result.num_accepted + 1;
  slot.len += result.num_committed;
  slot.num_draft_tokens = 0;
  result.goes_on = slot.len < sequence.max_len;
  totals_.num_accepted += result.num_accepted;
  if (result.num_accepted > 0 && totals_.first_accepting_step < 0) {
    totals_.first_accepting_step = static_cast<int>(totals_.num_steps);
  }
  return result;
}

bool ListWorld::accepts_next(const Sequence& sequence, const Result& result) {
  const int position = result.slot->len + result.num_accepted;
  if (workload_.accepts)
    return workload_.accepts(static_cast<int>(sequence.id), result.slot->len, position);
  return std::uniform_real_distribution<double>(0, 1)(random_) <
         workload_.acceptance(result.drafter);
}

void ListWorld::learn(int drafter, const Step& step) {
  const auto index = static_cast<size_t>(drafter);
  const int most = config_.drafters[index].max_draft_tokens;
  spec::StepVerifications all{};
  all.first_unseen = kMaxDraftTokens;
  for (const Result& result : step.results) {
    DraftRates& rates = result.slot->rates[index];
    if (rates.num_rated == 0) spec::start_rates(rates, priors_[index], most);
    const int num_drafted = result.drafter == drafter ? result.num_drafted : 0;
    const int rested = result.num_drafted > 0 ? 1 : result.num_committed;
    rates.since_draft = spec::since_draft_after(rates.since_draft, num_drafted, rested);
    if (num_drafted == 0) {
      all.committed += rested;
      continue;
    }
    const spec::Outcome outcome =
        spec::outcome_of(num_drafted, result.num_accepted, result.num_committed);
    spec::rate_sequence(rates, outcome, most);
    for (int i = 0; i < outcome.accepted; ++i) ++all.accepted[i];
    if (outcome.rejected) ++all.rejected[outcome.accepted];
    if (outcome.accepted == outcome.drafted) {
      all.first_unseen = std::min(all.first_unseen, outcome.drafted);
    }
    ++all.count;
  }
  spec::rate_prior(priors_[index], all, most);
}

int ListWorld::room(int drafter, const Span& span, const Result& result) const {
  const Slot& slot = *result.slot;
  if (!result.goes_on || (slot.num_draft_tokens > 0 && slot.drafter != drafter)) return 0;
  const int granted = is_listed(drafter) ? span.num_lookup_tokens : span.num_draft_tokens;
  return std::max(0, std::min({granted, span.sequence->max_draft_tokens,
                               span.sequence->max_len - slot.len - 1}));
}

int ListWorld::lowest_level(int drafter, const Step& step) {
  const auto index = static_cast<size_t>(drafter);
  std::array<int32_t, spec::LevelConstants::kNumLevels> counts{};
  int num_slots = 0, num_least = 0, least_gain = 0;
  for (size_t i = 0; i < step.spans.size(); ++i) {
    const DraftRates& rates = step.results[i].slot->rates[index];
    if (step.results[i].goes_on) ++num_slots;
    const int most = room(drafter, step.spans[i], step.results[i]);
    const int least = spec::least_drafts(rates, most);
    int32_t survival = spec::RateConstants::kOne;
    for (int k = 0; k < most; ++k) {
      survival = spec::next_survival(survival, rates.rates[k]);
      const int level = spec::level_of(survival);
      if (k < least) {
        ++num_least;
        least_gain += spec::level_gain(level);
      } else {
        ++counts[static_cast<size_t>(level)];
      }
    }
  }
  const DraftUse& use = step.use[index];
  const auto spans = static_cast<int>(std::bit_ceil(static_cast<unsigned>(use.num_spans)));
  const int drafts =
      looks_up(drafter) ? config_.drafters[index].max_draft_tokens : use.num_draft_tokens;
  std::vector<int32_t>& row_ns = row_ns_[{spans, drafts}];
  if (row_ns.empty()) row_ns = times_.row_ns(spans, drafts, spans * (drafts + 1));
  return spec::lowest_level(counts.data(), num_slots, num_least, least_gain,
                            {row_ns.data(), static_cast<int32_t>(row_ns.size()),
                             static_cast<int32_t>(times_.draft_ns(drafter, use))});
}

void ListWorld::propose(int drafter, const Step& step) {
  const auto index = static_cast<size_t>(drafter);
  const int level = lowest_level(drafter, step);
  for (size_t i = 0; i < step.spans.size(); ++i) {
    const Span& span = step.spans[i];
    Slot& slot = *step.results[i].slot;
    const int most = room(drafter, span, step.results[i]);
    if (most == 0) continue;
    const DraftRates& rates = slot.rates[index];
    const int least = spec::least_drafts(rates, most);
    slot.num_draft_tokens = spec::drafts_down_to(rates, least, most, level);
    slot.drafter = drafter;
    if (!looks_up(drafter)) continue;
    const int found = workload_.finds(static_cast<int>(span.sequence->id), slot.len);
    slot.num_draft_tokens = std::min(slot.num_draft_tokens, found);
    const auto last = static_cast<size_t>(workload_.last);
    if (is_listed(drafter) && slot.num_draft_tokens > 0 &&
        !spec::lookup_stands({rates, priors_[index], slot.num_draft_tokens},
                             {slot.rates[last], priors_[last], span.num_draft_tokens})) {
      slot.num_draft_tokens = 0;
    }
  }
}

bool ListWorld::is_likely(const Span& span, const Result& result) const {
  return workload_.is_sure && result.goes_on &&
         workload_.is_sure(static_cast<int>(span.sequence->id), result.slot->len);
}

void ListWorld::reconcile(const Step& step) {
  using Kind = LengthController::Kind;
  for (size_t i = 0; i < step.spans.size(); ++i) {
    const Span& span = step.spans[i];
    const Result& result = step.results[i];
    for (int drafter = 0; drafter < static_cast<int>(config_.drafters.size()); ++drafter) {
      if (result.num_committed == 0) break;
      const bool is_own = result.drafter == drafter;
      policy_.observe(step.number, drafter, span.max_verified, is_own ? result.num_drafted : 0,
                      is_own ? result.num_accepted : 0,
                      is_listed(drafter) ? Kind::kListed : Kind::kOwn);
      if (looks_up(drafter) && is_likely(span, result)) {
        policy_.found(step.number, drafter, is_listed(drafter) ? Kind::kListed : Kind::kOwn);
      }
    }
    const std::vector<int32_t> ids(static_cast<size_t>(result.num_committed), 1);
    const SequenceEvent event =
        scheduler_.reconcile(span, {.ids = ids,
                                    .ended = result.slot->len >= span.sequence->max_len,
                                    .draft_missing = span.sequence->max_len,
                                    .num_accepted = result.num_accepted,
                                    .drafter = std::max(result.drafter, 0),
                                    .found_lookup = is_likely(span, result)});
    if (event == SequenceEvent::kReleased) --num_running_;
  }
}

int64_t ListWorld::step_ns(const Step& step) const {
  int64_t num_rows = 0, granted = 0, live = 0;
  bool decodes = true;
  for (size_t i = 0; i < step.spans.size(); ++i) {
    num_rows += step.spans[i].num_tokens + step.results[i].num_drafted;
    granted += step.spans[i].max_verified;
    live += step.results[i].num_drafted;
    decodes = decodes && step.spans[i].first_new_id < 0;
  }
  int64_t ns = decodes ? times_.step_ns(static_cast<int>(step.spans.size()), granted, live)
                       : times_.target.at(static_cast<int>(num_rows));
  for (size_t d = 0; d < config_.drafters.size(); ++d) {
    ns += times_.draft_ns(static_cast<int>(d), step.use[d]);
  }
  return ns;
}

}  // namespace foretoken
