#include "spec/length_controller.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "spec/draft_schedule.h"

namespace foretoken {
namespace {

constexpr int64_t kOne = BatchRates::kOne;
constexpr int kNoClass = -1;  // DraftGrant::max_class

// Tuned in the simulated world of tests/spec and on H100 and H200
// (docs/decisions/0006-step-time-table.md).
struct Tuning {
  // Verifications before costs are taken at their word. Fewer, and a drafter is judged by chance;
  // more, and one that does not fit costs time.
  static constexpr int kFirstSeen = 8;
  // Until then a sequence may lack 16 entries a token to come. A higher class, and the first try
  // catches up whole long prompts.
  static constexpr int kFirstClass = 8;
  // Verifications of a few sequences, before all follow. Fewer, and all catch up for a drafter that
  // turns out not to pay; more, and speculation starts late.
  static constexpr int kLearning = 32;
  // The few, at least. Fewer, and learning takes long in small batches.
  static constexpr int kLearningSpans = 8;
  // 1/64 better than resting ends a rest. Less, and a drafter at the border wakes and rests in
  // turns, which costs its catching up each time.
  static constexpr int64_t kWakeMargin = 64;
  // 1/256 better than the last limit. Less, and limits flicker, each with a graph of its own.
  static constexpr int64_t kSwitchMargin = 256;
  // Steps between probes of a resting drafter. Fewer, and probes cost time; more, and a text that
  // became predictable is noticed late.
  static constexpr uint64_t kProbeSteps = 64;
  // A probe is of one of so many sequences. More sequences cost more than 1 %.
  static constexpr int kProbeShare = 16;
  // Of the modelled time, for probes: the promise that speculation never loses rests on it.
  static constexpr int64_t kBudgetShare = 128;
  // Steps that the budget saves up at most. More, and a long rest ends with many probes at once.
  static constexpr int64_t kBudgetSteps = 64;
  // Rows of a catch-up that are rated together, at least. Fewer, and one sequence alone seems too
  // dear to be caught up, though others would share its pass.
  static constexpr int kAlone = 64;
};
int rows_of(const LengthControllerConfig::PolicyDrafter& drafter, int num_sequences, int limit) {
  if (!drafter.has_kv) return 0;
  return num_sequences * (drafter.keeps_written ? std::min(2, limit + 1) : limit + 1);
}

// Entries that each of a few sequences is taken to lack, where the best one lacks so many.
int missing_among_few(int fewest) { return fewest + fewest / 2; }

}  // namespace

namespace {

int max_branches(const LengthControllerConfig& config) {
  int most = 0;
  for (const auto& drafter : config.drafters) most = std::max(most, drafter.num_branches);
  return most;
}

}  // namespace

LengthController::LengthController(const LengthControllerConfig& config, const CostTable& times)
    : config_(config),
      times_(times),
      max_age_(static_cast<uint64_t>(std::max(2, config.steps_in_flight))),
      branches_(max_branches(config), max_age_),
      grants_(config.drafters.size()) {
  FT_CHECK(config.drafters.size() <= kMaxDrafters && max_age_ < kRingSize - 1);
  FT_CHECK(config.mode != LengthMode::kAdaptive ||
           (times.drafters.size() == config.drafters.size() && !times.target.empty()));
  for (size_t i = 0; i < grants_.size(); ++i) {
    states_[i] = State{config.drafters[i].learned};
    state_of(static_cast<int>(i), Kind::kListed) = State{config.drafters[i].learned_in_lists};
  }
  feedback_.begin_with(config.steps, times.is_guess, times.is_rough());
}

void LengthController::times_changed() {
  feedback_.begin_with({}, times_.is_guess, times_.is_rough());
  trials_ = {};
}

const PolicyState& LengthController::learned(int drafter, Kind kind) const {
  const auto index = static_cast<size_t>(drafter);
  return kind == Kind::kOwn ? states_[index] : kind_states_[index][static_cast<size_t>(kind)];
}

int LengthController::num_branches(uint64_t step, int drafter, const DraftGrant& grant,
                                   const BatchDemand& demand) {
  const auto& traits = config_.drafters[static_cast<size_t>(drafter)];
  if (traits.num_branches == 0 || grant.num_draft_tokens == 0) return 0;
  const int rows_each = 1 + grant.num_draft_tokens;
  const DraftUse use{grant.num_draft_tokens, demand.num_decoding * rows_each, demand.num_decoding};
  return branches_.decide(
      step,
      {.num_rows = demand.num_decoding * rows_each,
       .rows_each = rows_each,
       .draft_ns = adaptive() ? times_.draft_ns(drafter, use, mean_tokens_) : 0},
      times_.target);
}

DraftGrant LengthController::set_grant(const LengthControllerConfig::PolicyDrafter& drafter,
                                       const BatchDemand& demand) const {
  DraftGrant grant;
  if (config_.mode == LengthMode::kFixed) grant.num_draft_tokens = drafter.max_draft_tokens;
  if (config_.mode == LengthMode::kSchedule) {
    grant.num_draft_tokens =
        scheduled_draft_tokens(config_.schedule, demand.num_sequences, drafter.max_draft_tokens);
  }
  if (grant.num_draft_tokens > 0 && drafter.has_kv) grant.catch_up_rows = drafter.max_catch_up_rows;
  return grant;
}

std::span<const DraftGrant> LengthController::decide(uint64_t step, const BatchDemand& demand) {
  take_in(step);
  num_decoding_ = demand.num_decoding;
  mean_tokens_ = demand.num_tokens / std::max(1, demand.num_counted);
  for (size_t i = 0; i < grants_.size(); ++i) {
    const auto& drafter = config_.drafters[i];
    DraftGrant& grant = grants_[i];
    grant = {};
    if (adaptive()) {
      grant = adaptive_grant(step, static_cast<int>(i), demand);
      raise_limit(step, static_cast<int>(i), demand, Kind::kListed, grant);
      raise_limit(step, static_cast<int>(i), demand, Kind::kPredicted, grant);
      grant.others_come = others_come(demand);
    } else {
      grant = set_grant(drafter, demand);
    }
    grant.num_branches = num_branches(step, static_cast<int>(i), grant, demand);
  }
  return grants_;
}

void LengthController::observe(uint64_t step, int drafter, int max_verified, int num_drafted,
                               int num_accepted, Kind kind) {
  record_of(step).num_live += num_drafted;
  ByKind<BatchResults>& results = results_[step % kRingSize][static_cast<size_t>(drafter)];
  results[static_cast<size_t>(kind)].add(max_verified, num_drafted, num_accepted);
}

void LengthController::found(uint64_t step, int drafter, Kind kind) {
  ++results_[step % kRingSize][static_cast<size_t>(drafter)][static_cast<size_t>(kind)].num_found;
}

void LengthController::State::take_in(const BatchResults& results,
                                      const LengthControllerConfig::PolicyDrafter& drafter) {
  const bool rests = num_draft_tokens == 0;
  const int64_t num_spans = results.reached[0] + results.num_idle;
  if (rests || !drafter.looks_up) {
    num_with_room = 0;
  } else if (num_spans > 0) {
    const int64_t window = BatchRates::share_window(num_spans, true);
    if (num_with_room == 0) num_with_room = num_spans * kOne;
    num_with_room =
        spec::moved_rate<int64_t>(num_with_room, num_spans * num_spans * kOne, num_spans, window);
  }
  rates.take_in(results, rests, drafter.max_draft_tokens, drafter.looks_up);
  num_seen = std::min(num_seen + results.reached[0], Tuning::kLearning);
  num_ever = std::min(num_ever + results.reached[0], Tuning::kFirstSeen);
}

// Results of steps up to step - max_age_, each once.
void LengthController::take_in(uint64_t step) {
  for (; num_taken_in_ + max_age_ <= step; ++num_taken_in_) {
    auto& results = results_[num_taken_in_ % kRingSize];
    for (size_t i = 0; i < grants_.size(); ++i) {
      const auto& drafter = config_.drafters[i];
      states_[i].take_in(results[i][static_cast<size_t>(Kind::kOwn)], drafter);
      for (size_t kind = 1; kind < kNumKinds; ++kind) {
        kind_states_[i][kind].take_in(results[i][kind], drafter);
      }
    }
    results = {};
  }
}

// A rest that ended without a draft, as none of the sequences that were to come paid for its
// prompt, has told nothing: the next probe stays where it was.
void LengthController::State::rest_from(uint64_t step) {
  if (num_seen > 0) next_probe = step + Tuning::kProbeSteps;
  if (num_ever > 0) num_ever = Tuning::kFirstSeen;
}

// Sequences of other drafters and of none.
LengthController::Load LengthController::load_beside(int drafter, const BatchDemand& demand) const {
  Load load;
  int num_plain = demand.num_decoding;
  for (size_t i = 0; i < grants_.size(); ++i) {
    const DraftDemand& other = demand.drafters[i];
    num_plain -= other.num_decoding;
    if (static_cast<int>(i) == drafter) continue;
    const int limit = states_[i].num_draft_tokens;
    const int64_t drafting = other.num_ready * states_[i].rates.share();
    load.seqs += other.num_decoding;
    load.granted += int64_t{other.num_ready} * limit;
    load.live += drafting * limit / kOne;
    load.tokens +=
        other.num_decoding * kOne + drafting * states_[i].rates.expected_drafts(limit) / kOne;
  }
  load.seqs += num_plain;
  load.tokens += num_plain * kOne;
  return load;
}

LengthController::Speed LengthController::speed_of(int drafter, const State& state, int limit,
                                                   const Room& room, const Batch& batch) const {
  const auto& traits = config_.drafters[static_cast<size_t>(drafter)];
  const Load& load = batch.load;
  const int num_sequences = batch.num_sequences;
  Speed speed{.room = room};
  const int num_with_room = speed.room.num_sequences;
  const DraftUse use{.num_draft_tokens = limit,
                     .catch_up_rows = limit > 0 ? rows_of(traits, num_with_room, limit) : 0,
                     .num_spans = limit > 0 ? num_with_room : 0};
  int64_t had_room = num_sequences * kOne;
  if (state.num_with_room > 0) had_room = std::min(had_room, state.num_with_room);
  const int64_t drafting = std::min(had_room * state.rates.share() / kOne, num_with_room * kOne);
  const int64_t accepted = drafting * state.rates.expected_drafts(limit) / kOne;
  speed.accepted = accepted / std::max(num_with_room, 1);
  speed.tokens = load.tokens + num_sequences * kOne + accepted;
  const int64_t draft_ns = times_.draft_ns(drafter, use, mean_tokens_);
  // Steps of one sequence have all of its drafts or none, and take long only where there are any.
  const auto ns_where = [&](int64_t num_drafting) {
    return ring_ns({load.seqs + num_sequences, load.granted + int64_t{num_with_room} * limit,
                    load.live + num_drafting * limit, speed.tokens},
                   draft_ns);
  };
  const int64_t whole = drafting / kOne;
  const int64_t part = drafting % kOne;
  speed.ns = ns_where(whole);
  if (part > 0) speed.ns += (ns_where(whole + 1) - speed.ns) / kRingSize * part / kOne * kRingSize;
  return speed;
}

// The limit that pays most for the sequences of the batch; the last one unless another is clearly
// better. Example: of 4 sequences drafts are accepted with 0.8, 0.7 and 0.5, so that 1 to 3 drafts
// bring 0.8, 1.36 and 1.64 tokens each; 4 / 8 / 12 / 16 rows take 4.0 / 4.1 / 4.3 / 4.8 ms, a draft
// pass 0.2 ms. Tokens each ms: 4 / 4.0 = 1.00 without drafts, 7.2 / 4.3 = 1.67, 9.44 / 4.7 = 2.01,
// 10.56 / 5.4 = 1.96. The limit is 2, unless it was 3 and that were within 1/256; a token saves
// 4.0 / 4 - 4.7 / 9.44 = 0.50 ms, by which `payable_class` decides who is caught up.
LengthController::Choice LengthController::choose(int drafter, const State& state,
                                                  const Batch& batch) const {
  if (batch.num_sequences == 0) return {};
  std::array<int64_t, kMaxDraftTokens + 1> speeds{};
  std::array<int64_t, kMaxDraftTokens + 1> token_ns{};
  std::array<int, kMaxDraftTokens + 1> classes{};
  size_t best = 0;
  int64_t plain_ns = 0;
  for (int limit = 0; limit <= config_.drafters[static_cast<size_t>(drafter)].max_draft_tokens;
       ++limit) {
    const auto at = static_cast<size_t>(limit);
    for (const Room& room : rooms_of(limit, batch)) {
      if (room.num_sequences == 0) continue;
      const Speed speed = speed_of(drafter, state, limit, room, batch);
      if (limit == 0) plain_ns = speed.ns;
      const int64_t tokens_each_ns = (speed.tokens << 32) / speed.ns;
      if (tokens_each_ns <= speeds[at] || slows_others(speed, plain_ns, batch)) continue;
      speeds[at] = tokens_each_ns;
      token_ns[at] = speed.ns / kRingSize * kOne / speed.tokens;
      classes[at] = room.min_class;
    }
    if (speeds[at] > speeds[best]) best = at;
  }
  const auto last = static_cast<size_t>(state.num_draft_tokens);
  const int64_t margin = speeds[last] / (last == 0 ? Tuning::kWakeMargin : Tuning::kSwitchMargin);
  if (best > 0 && speeds[best] <= speeds[last] + margin) best = last;
  return {static_cast<int>(best), token_ns[0] - token_ns[best], classes[best]};
}

// The last class of sequences whose tokens to come, at half of what they save, pay for the rows
// that catch them up.
int LengthController::payable_class(int drafter, int64_t saved_ns, int64_t num_missing) const {
  const auto index = static_cast<size_t>(drafter);
  const int most = std::max(Tuning::kAlone, config_.drafters[index].max_catch_up_rows);
  const auto rows = static_cast<int>(std::clamp<int64_t>(num_missing, Tuning::kAlone, most));
  int64_t together_ns = times_.catch_up_ns(drafter, rows, mean_tokens_);
  // No dearer than the model's own rows.
  if (times_.is_rough()) together_ns = std::min(together_ns, times_.target.at(rows));
  int last = kNoClass;
  for (int i = 0; i < kNumCatchUpClasses - 1; ++i) {
    if ((together_ns << i) * 2 <= saved_ns * 16 * rows) last = i;
  }
  return last;
}

// Sequences that draft where those of the classes up to `max_class` are caught up.
int LengthController::num_drafting(int drafter, const DraftDemand& own, int max_class) const {
  const bool prompts = max_class >= 0 || !config_.drafters[static_cast<size_t>(drafter)].has_kv;
  int sum = own.num_ready + (prompts ? own.num_coming : 0);
  for (int i = 0; i <= max_class; ++i) sum += own.num_resting[static_cast<size_t>(i)];
  return sum;
}

// Sequences that show what drafts are worth when nothing is known: some, as one alone would take as
// long, but no more than about one step catches up.
int LengthController::num_first_learners(int drafter, const DraftDemand& own) const {
  const auto& traits = config_.drafters[static_cast<size_t>(drafter)];
  const int rows_each = std::max(missing_among_few(own.fewest_missing), 1);
  const int most =
      std::min(own.num_decoding / Tuning::kProbeShare, traits.max_catch_up_rows / rows_each);
  return std::clamp(most, 1, Tuning::kLearningSpans);
}

DraftGrant LengthController::adaptive_grant(uint64_t step, int drafter, const BatchDemand& demand) {
  const auto index = static_cast<size_t>(drafter);
  const DraftDemand& own = demand.drafters[index];
  const auto& traits = config_.drafters[index];
  State& state = states_[index];
  state.probing = false;
  const int num_all = own.num_decoding + own.num_coming;
  if (num_all == 0) return {};
  Load load = load_beside(drafter, demand);
  const Gains gains = gains_of(drafter, demand, Kind::kOwn);
  const Gains* lookups = traits.looks_up ? &gains : nullptr;
  const Choice together = choose(drafter, state, {num_all, load, lookups});

  DraftGrant grant;
  const int64_t num_missing =
      std::accumulate(own.num_missing.begin(), own.num_missing.end(), int64_t{0});
  grant.max_class = payable_class(drafter, together.saved_ns, num_missing);
  int num_sequences = num_drafting(drafter, own, grant.max_class);
  const bool knows_nothing = state.num_ever < Tuning::kFirstSeen;
  if (num_sequences == 0 && knows_nothing && together.num_draft_tokens > 0) {
    // A few may cost more than they seem to be worth, which probes must wait for.
    state.probing = true;
    grant.max_class = Tuning::kFirstClass;
    grant.max_spans = num_first_learners(drafter, own);
    num_sequences = num_drafting(drafter, own, grant.max_class);
  }
  load.seqs += num_all - num_sequences;
  load.tokens += (num_all - num_sequences) * kOne;
  const Choice own_choice = choose(drafter, state, {num_sequences, load, lookups});
  grant.num_draft_tokens = own_choice.num_draft_tokens;
  grant.min_class = own_choice.min_class;
  const bool learning =
      knows_nothing || (state.num_draft_tokens > 0 && state.num_seen < Tuning::kLearning);
  if (learning && num_sequences > 0)
    grant.num_draft_tokens = std::max(grant.num_draft_tokens, together.num_draft_tokens);
  if (grant.num_draft_tokens > 0 && state.num_draft_tokens == 0) state.num_seen = 0;
  if (state.num_seen < Tuning::kFirstSeen)
    grant.num_draft_tokens = trial_limit(drafter, grant.num_draft_tokens, num_sequences);
  if (traits.has_kv && state.num_seen < Tuning::kLearning) {
    grant.max_spans =
        std::min(grant.max_spans, std::max(Tuning::kLearningSpans, num_sequences / 2));
  }
  if (traits.has_kv) grant.catch_up_rows = traits.max_catch_up_rows;
  if (grant.num_draft_tokens == 0 && state.num_draft_tokens > 0) state.rest_from(step);
  state.num_draft_tokens = grant.num_draft_tokens;
  if (try_more(drafter, own, grant)) return grant;
  return grant.num_draft_tokens > 0 ? grant : probe(step, drafter, demand);
}

// A trial of more drafts than pay by a rough table, which nothing else would correct. Those that
// lack the fewest entries are caught up for it.
bool LengthController::try_more(int drafter, const DraftDemand& own, DraftGrant& grant) {
  if (!times_.is_rough() || !config_.follows_device || own.num_decoding == 0) return false;
  const auto index = static_cast<size_t>(drafter);
  const auto& traits = config_.drafters[index];
  int limit = trials_.limit_of(drafter);
  if (limit == 0) {
    limit = untried_limit(drafter, states_[index], grant.num_draft_tokens, own.num_decoding);
    if (limit == 0) return false;
    const int64_t loss = trial_loss_ns(drafter, limit, own.num_decoding);
    if (!trials_.begin(drafter, limit, loss, plain_ns(num_decoding_))) return false;
  }
  grant.num_draft_tokens = limit;
  grant.max_spans = std::numeric_limits<int>::max();
  grant.min_class = 0;
  if (!traits.has_kv) return true;
  grant.catch_up_rows = traits.max_catch_up_rows;
  grant.max_class = std::max(grant.max_class, Tuning::kFirstClass);
  return true;
}

// To what pays for the sequences of a kind. At least one draft every Tuning::kProbeSteps steps, so
// that a prediction which fits again is noticed; of look-ups in lists for a few sequences, where
// the budget has it.
void LengthController::raise_limit(uint64_t step, int drafter, const BatchDemand& demand, Kind kind,
                                   DraftGrant& grant) {
  const auto index = static_cast<size_t>(drafter);
  State& state = state_of(drafter, kind);
  const DraftDemand& own = demand.drafters[index];
  const int num_sequences = kind == Kind::kPredicted ? own.num_predicted : own.num_listed;
  if (num_sequences == 0) {
    state.probing = false;
    if (kind == Kind::kPredicted) state = State();
    return;
  }
  // These were counted among those beside the drafter.
  Load load = load_beside(drafter, demand);
  load.seqs = std::max(load.seqs - num_sequences, 0) + own.num_decoding;
  load.tokens = load.seqs * kOne;
  const bool rested = state.num_draft_tokens == 0;
  const Gains gains = gains_of(drafter, demand, kind);
  const Choice choice =
      choose(drafter, state, {num_sequences, load, kind == Kind::kListed ? &gains : nullptr});
  state.num_draft_tokens = choice.num_draft_tokens;
  if (kind == Kind::kListed) grant.min_listed_class = choice.min_class;
  if (state.num_draft_tokens > 0) state.next_probe = step + Tuning::kProbeSteps;
  if (rested && state.num_draft_tokens > 0) state.num_seen = 0;
  if (kind != Kind::kPredicted && state.num_seen < Tuning::kFirstSeen)
    state.num_draft_tokens = trial_limit(drafter, state.num_draft_tokens, num_sequences);
  state.probing = state.num_draft_tokens == 0 && step >= state.next_probe;
  if (state.probing && kind == Kind::kListed) {
    grant.max_lookups = probing_lookups(drafter, demand);
    state.probing = grant.max_lookups > 0;
  }
  if (state.probing) state.next_probe = step + Tuning::kProbeSteps;
  const int limit = state.probing ? 1 : state.num_draft_tokens;
  if (limit <= grant.num_draft_tokens) return;
  grant.num_draft_tokens = limit;
  grant.max_spans = std::numeric_limits<int>::max();
}

// Of the sequences that have the look-up before another drafter, those for which the budget has a
// draft each.
int LengthController::probing_lookups(int drafter, const BatchDemand& demand) const {
  const int num_listed = demand.drafters[static_cast<size_t>(drafter)].num_listed;
  for (int num_spans = 1 + num_listed / Tuning::kProbeShare; num_spans > 0; num_spans /= 2) {
    const DraftUse use{.num_draft_tokens = 1, .num_spans = num_spans};
    if (probe_ns(drafter, demand.num_decoding, use) <= budget_ns_) return num_spans;
  }
  return 0;
}

// What the use adds to a step of so many sequences.
int64_t LengthController::probe_ns(int drafter, int num_decoding, const DraftUse& use) const {
  return times_.draft_ns(drafter, use) +
         times_.step_ns(num_decoding, int64_t{use.num_spans} * use.num_draft_tokens,
                        int64_t{use.num_spans} * use.num_draft_tokens) -
         times_.step_ns(num_decoding, 0, 0);
}

// Of the few sequences that lack the fewest entries, what the budget has. One draft each; all of a
// drafter that makes them in one pass, whose later ones tell what it is worth, or half, and so on.
DraftGrant LengthController::probe(uint64_t step, int drafter, const BatchDemand& demand) {
  const auto index = static_cast<size_t>(drafter);
  const auto& traits = config_.drafters[index];
  if (demand.drafters[index].num_decoding == 0) return {};
  if (step < states_[index].next_probe) return {};
  const bool is_block = !traits.looks_up && times_.drafters[index].one_pass;
  for (int drafts = is_block ? traits.max_draft_tokens : 1; drafts > 0; drafts /= 2) {
    const DraftGrant grant = probe_with(drafts, drafter, demand);
    if (grant.num_draft_tokens > 0) return grant;
  }
  return {};
}

DraftGrant LengthController::probe_with(int drafts, int drafter, const BatchDemand& demand) {
  const auto index = static_cast<size_t>(drafter);
  const DraftDemand& own = demand.drafters[index];
  const auto& traits = config_.drafters[index];
  const int fewest = own.num_ready > 0 ? 0 : own.fewest_missing;
  for (int num_spans = 1 + own.num_decoding / Tuning::kProbeShare; num_spans > 0; num_spans /= 2) {
    const int missing = num_spans > 1 ? missing_among_few(fewest) : fewest;
    const int rows = traits.has_kv ? num_spans * std::max(missing, 2) : 0;
    if (rows > traits.max_catch_up_rows) continue;
    const DraftUse use{.num_draft_tokens = drafts, .catch_up_rows = rows, .num_spans = num_spans};
    if (probe_ns(drafter, demand.num_decoding, use) > budget_ns_) continue;
    states_[index].probing = true;
    return {.num_draft_tokens = drafts,
            .catch_up_rows = rows,
            .max_spans = num_spans,
            .max_missing = missing,
            .max_class = kNoClass};
  }
  return {};
}

void LengthController::planned(uint64_t step, const PlannedStep& plan) {
  StepRecord& record = record_of(step);
  record.num_live = 0;
  if (!adaptive()) return;
  record.plan = plan;
  record.is_trial = trials_.planned();
  if (plan.num_rows == 0) return;  // beside the steps of other engines
  const int64_t step_ns = times_.target.at(plan.num_rows);
  budget_ns_ =
      std::min(budget_ns_ + step_ns / Tuning::kBudgetShare, Tuning::kBudgetSteps * step_ns);
  for (size_t i = 0; i < grants_.size(); ++i) {
    const DraftUse& use = plan.use[i];
    State& listed = state_of(static_cast<int>(i), Kind::kListed);
    const bool probes = states_[i].probing || listed.probing;
    if (!probes || use.catch_up_rows + use.num_draft_tokens == 0) continue;
    budget_ns_ -= probe_ns(static_cast<int>(i), num_decoding_, use);
    for (State* state : {&states_[i], &listed}) {
      if (state->probing) state->next_probe = step + Tuning::kProbeSteps;
      state->probing = false;
    }
  }
}

}  // namespace foretoken
