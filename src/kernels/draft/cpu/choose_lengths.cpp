#include "kernels/draft/choose_lengths.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/draft/draft_slots.h"
#include "kernels/draft_lists.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

// The slots of a step that one drafter serves.
struct Lengths {
  const ChooseLengthsArgs& a;
  const PlanView plan;

  bool is_served(int span) const { return serves(params(span), a.drafter); }
  const SlotParams& params(int span) const { return a.batch.params[plan.spans[span].slot]; }
  SlotState& state(int span) const { return a.batch.slots[plan.spans[span].slot]; }
  DraftRates& rates(int span) const { return rates_of(state(span), params(span), a.drafter); }
  bool has_turn(int span) const { return !has_other_drafts(state(span), params(span), a.drafter); }
  bool goes_on(int span) const { return foretoken::goes_on(a.spans[span], state(span)); }
  DraftRates& prior() const { return a.batch.priors[a.drafter]; }
  int most(int span) const {
    const int granted = granted_drafts(plan.spans[span], params(span), a.drafter);
    return goes_on(span) && has_turn(span)
               ? max_draft_tokens(state(span), params(span), granted, a.draft_max_len)
               : 0;
  }
  int least(int span, int most) const {
    return span == probe ? 1 : spec::least_drafts(rates(span), most);
  }

  int probe = -1;  // the span that is the drafter's own probe
};

void note(spec::StepVerifications& step, const spec::Outcome& v) {
  for (int i = 0; i < v.accepted; ++i) ++step.accepted[i];
  if (v.rejected) ++step.rejected[v.accepted];
  if (v.accepted == v.drafted) step.first_unseen = std::min(step.first_unseen, v.drafted);
  ++step.count;
}

void update_rates(const Lengths& lengths) {
  const ChooseLengthsArgs& a = lengths.a;
  const ResultView result = result_view(const_cast<void*>(a.result), a.result_limits);
  spec::StepVerifications step{};
  step.first_unseen = kMaxDraftTokens;
  for (int i = 0; i < lengths.plan.header->num_spans; ++i) {
    if (!lengths.is_served(i)) continue;
    const SlotParams& params = lengths.params(i);
    DraftRates& rates = lengths.rates(i);
    const bool predicted = is_predicted(params);
    if (rates.num_rated == 0) {
      predicted ? spec::start_first_rates(rates, a.max_draft_tokens)
                : spec::start_rates(rates, lengths.prior(), a.max_draft_tokens);
    }
    if (!predicted) step.committed += rested_tokens(result.spans[i], params, a.drafter);
    if (drafted_with(result.spans[i], params, a.drafter) == 0) continue;
    const spec::Outcome v = outcome_of(result.spans[i]);
    spec::rate_sequence(rates, v, a.max_draft_tokens);
    if (!predicted) note(step, v);
  }
  spec::rate_prior(lengths.prior(), step, a.max_draft_tokens);
}

// Makes the next verifications of what rested long count.
int expect_probes(const Lengths& lengths) {
  const bool wants_probe = spec::wants_probe(lengths.prior());
  spec::expect_probe(lengths.prior());
  int32_t highest = 0;
  int probe = -1;
  for (int i = 0; i < lengths.plan.header->num_spans; ++i) {
    if (!lengths.is_served(i)) continue;
    spec::expect_probe(lengths.rates(i));
    const int32_t priority = spec::probe_priority(lengths.rates(i), lengths.most(i), i);
    if (!wants_probe || priority <= highest) continue;
    highest = priority;
    probe = i;
  }
  return probe;
}

// The lowest level of survival at which drafts pay.
int choose_level(const Lengths& lengths) {
  int32_t counts[spec::LevelConstants::kNumLevels] = {};
  int32_t slots = 0, least_drafts = 0, least_gain = 0;
  for (int i = 0; i < lengths.plan.header->num_spans; ++i) {
    if (lengths.goes_on(i)) ++slots;
    if (!lengths.is_served(i)) continue;
    const DraftRates& rates = lengths.rates(i);
    const int most = lengths.most(i);
    const int least = lengths.least(i, most);
    int32_t survival = spec::RateConstants::kOne;
    for (int k = 0; k < most; ++k) {
      survival = spec::next_survival(survival, rates.rates[k]);
      const int level = spec::level_of(survival);
      if (k < least) {
        ++least_drafts;
        least_gain += spec::level_gain(level);
      } else {
        ++counts[level];
      }
    }
  }
  const ChooseLengthsArgs& a = lengths.a;
  return spec::lowest_level(counts, slots, least_drafts, least_gain,
                            {a.row_ns, a.num_row_ns, a.draft_ns});
}

}  // namespace

void choose_lengths(const void* args, CpuPool&) {
  const auto& a = *static_cast<const ChooseLengthsArgs*>(args);
  Lengths lengths{a, plan_view(const_cast<void*>(a.plan), a.limits)};
  update_rates(lengths);
  lengths.probe = expect_probes(lengths);
  const int level = a.row_ns != nullptr ? choose_level(lengths) : 0;
  for (int i = 0; i < lengths.plan.header->num_spans; ++i) {
    if (!lengths.is_served(i)) continue;
    SlotState& state = lengths.state(i);
    const int most = lengths.most(i);
    const int least = lengths.least(i, most);
    state.draft.num_draft_tokens = spec::drafts_down_to(lengths.rates(i), least, most, level);
    if (lengths.has_turn(i)) take_turn(state, a.drafter);
  }
}

}  // namespace foretoken::cpu
