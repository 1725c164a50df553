#include "sched/scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/result.h"

namespace foretoken {
namespace {

SchedulerConfig with_defaults(SchedulerConfig config) {
  FT_CHECK(config.max_num_seqs > 0 && config.max_num_batched_tokens > 0);
  FT_CHECK(config.num_stages > 0);
  if (config.max_logits_rows == 0) config.max_logits_rows = config.max_num_batched_tokens;
  return config;
}

// What the step must do for a span; scoring ends with the prompt, and masks begin behind it.
uint32_t features_of(const Span& span) {
  uint32_t features = span.sequence->features & ~uint32_t{kScoresPrompt};
  if (!span.samples) features &= ~uint32_t{kHasGrammar};
  return span.wants_all ? features | kScoresPrompt : features;
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config)
    : config_(with_defaults(config)),
      kv_({.num_blocks = config.num_blocks,
           .num_window_blocks = config.num_window_blocks,
           .window = config.window,
           .block_size = config.block_size,
           .prefix_caching = config.prefix_caching,
           .whole_prompts = config.whole_prompts,
           .num_host_blocks = config.num_host_blocks,
           .num_host_windows = config.num_host_windows,
           .num_host_states = config.num_host_states,
           .max_block_assignments = config.max_block_assignments,
           .num_snapshots = config.num_snapshots,
           .max_num_seqs = config.max_num_seqs}),
      drafts_(config.drafters),
      adapters_(config.num_adapter_slots) {
  running_.reserve(config.max_num_seqs);
  for (int slot = config.max_num_seqs - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

Status Scheduler::check_whole(const Sequence& sequence) const {
  if (!config_.whole_prompts || sequence.prompt_len <= config_.max_num_batched_tokens) return {};
  const std::string length = std::to_string(sequence.prompt_len);
  return invalid_argument("the prompt has " + length + " tokens, and where its tokens see later " +
                          "ones (models that embed, --flex-mask with 'prompt') it is computed in " +
                          "one step, which has " + std::to_string(config_.max_num_batched_tokens) +
                          "; shorten it, or start with --max-num-batched-tokens " + length);
}

void Scheduler::add(Sequence& sequence) {
  FT_CHECK(sequence.known_len() > 0 &&
           sequence.known_len() < sequence.max_len + (sequence.pools ? 1 : 0));
  FT_CHECK(sequence.num_init_words <= config_.max_init_words);
  FT_CHECK(sequence.adapter == 0 || adapters_.num_slots() > 0);
  sequence.state = SequenceState::kWaiting;
  sequence.policy_priority = config_.policy == SchedulingPolicy::kPriority ? sequence.priority : 0;
  sequence.arrival = num_added_++;
  waiting_.push(sequence);
}

SequenceEvent Scheduler::finish(Sequence& sequence) {
  switch (sequence.state) {
    case SequenceState::kWaiting:
      waiting_.remove(sequence);
      sequence.state = SequenceState::kReleased;
      return SequenceEvent::kReleased;
    case SequenceState::kRunning:
      drafts_.note_end(sequence);
      std::erase(running_, &sequence);
      sequence.state = SequenceState::kFinished;
      ++num_finished_;
      if (sequence.num_inflight > 0) return SequenceEvent::kContinues;
      release(sequence);
      return SequenceEvent::kReleased;
    case SequenceState::kFinished:
    case SequenceState::kReleased:
      break;
  }
  return SequenceEvent::kContinues;
}

void Scheduler::describe(BatchDemand& demand) const {
  demand = {};
  demand.num_waiting = waiting_.size();
  const int num_coming = std::min(waiting_.size(), num_free_slots());
  demand.num_sequences = std::min(num_running() + num_coming, share_of_sequences());
  int room = share_of_sequences();
  for (const Sequence* sequence : running_) {
    if (room == 0) return;
    if (sits_out(*sequence)) continue;
    drafts_.describe(*sequence, demand);
    --room;
  }
  if (waiting_.empty()) return;
  // The first one stands for all.
  const Sequence& first = *waiting_.front();
  demand.num_counted += std::min(num_coming, room);
  demand.num_tokens += int64_t{first.prompt_len} * std::min(num_coming, room);
  if (first.max_draft_tokens == 0 || first.pools || first.drafter >= kMaxDrafters) return;
  if (first.is_predicted) return;
  demand.drafters[static_cast<size_t>(first.drafter)].num_coming += std::min(num_coming, room);
}

void Scheduler::find_unused_blocks(size_t most, std::vector<BlockId>& found) const {
  found.clear();
  const auto is_unused = [](const BlockPool& pool, BlockId block) {
    return pool.num_refs(block) == 0 && pool.epoch(block) == 0;
  };
  const BlockPool* windowed = window_blocks();
  int end = blocks().num_blocks();
  if (windowed != nullptr) end = std::min(end, windowed->num_blocks());
  for (BlockId block = 1; block < end && found.size() < most; ++block) {
    if (!is_unused(blocks(), block)) continue;
    if (windowed == nullptr || is_unused(*windowed, block)) found.push_back(block);
  }
}

bool Scheduler::plan(StepPlan& plan, std::span<const DraftGrant> grants, PacedRows paced) {
  plan.clear();
  pace(plan, paced);
  drafts_.open(grants);
  max_spans_ = config_.num_stages > 1 ? share_of_sequences() : config_.max_num_seqs;
  preempted_ = false;
  keep_states(plan);
  make_way_for_waiting();
  plan_running(plan);
  plan_waiting(plan);
  drafts_.deal(plan);
  plan_branches(plan);
  note_states(plan);
  if (is_bound_ && !is_shared_) plan.load.num_prompt_rows = plan.num_prompt_rows();
  kv_.end_plan(plan);
  if (plan.spans.empty()) return false;
  ++num_plans_;
  return true;
}

// Before slots are used again. Behind a prompt, with one step in flight, a slot's states go as far
// as that step's first row, whatever it accepts.
void Scheduler::keep_states(StepPlan& plan) {
  if (config_.num_snapshots == 0 || (running_.empty() && waiting_.empty())) return;
  kv_.begin_plan(plan);
  for (Sequence* running : running_) {
    Sequence& sequence = *running;
    if (rests(sequence)) continue;
    const bool is_output = sequence.caught_up && !sequence.pools && sequence.num_inflight <= 1;
    if (is_output && !drafts_.keeps_states(sequence)) {
      const int known = sequence.known_len();
      const bool grows = sequence.num_sampling == 1 && !sequence.may_pause;
      kv_.note_output_state(sequence, known - 1, grows ? known : known - 1);
    }
    kv_.keep_state(sequence, plan);
  }
}

// Remembered only now: blocks that this step fills can be hit from the next step on.
void Scheduler::note_states(const StepPlan& plan) {
  for (const Span& span : plan.spans) {
    Sequence& sequence = *span.sequence;
    if (span.first_new_id < 0) continue;
    kv_.remember(sequence, sequence.num_scheduled);
    const bool follows = drafts_.keeps_states(sequence) && drafts_.has_followed(sequence);
    kv_.note_state(sequence, static_cast<uint8_t>(follows ? 1 << sequence.drafter : 0));
  }
}

void Scheduler::plan_running(StepPlan& plan) {
  for (size_t i = 0; i < running_.size();) {
    Sequence& sequence = *running_[i];
    if (extend(sequence, plan) == Placement::kNoBlocks && make_room()) continue;
    if (i < running_.size() && running_[i] == &sequence) ++i;
  }
}

Scheduler::Placement Scheduler::extend(Sequence& sequence, StepPlan& plan) {
  if (sits_out(sequence)) return Placement::kSkipped;
  const bool is_full = static_cast<int>(plan.spans.size()) >= max_spans_;
  if (is_full || row_budget(plan) <= 0) return Placement::kSkipped;
  const Span span = sequence.caught_up ? next_token(sequence, plan) : next_chunk(sequence, plan);
  return span.num_tokens > 0 ? plan_span(plan, span) : Placement::kSkipped;
}

bool Scheduler::rests(const Sequence& sequence) const {
  return sequence.num_inflight > 0 &&
         num_plans_ - sequence.last_plan < static_cast<uint64_t>(config_.num_stages);
}

// Of a step: all, or so many that there are as many steps as stages.
int Scheduler::share_of_sequences() const {
  const int all = num_running() + std::min(waiting_.size(), num_free_slots());
  return std::max((all + config_.num_stages - 1) / config_.num_stages, 1);
}

// Sequences that are still to be planned, the first waiting one included.
int Scheduler::num_behind(const StepPlan& plan) const {
  const int waiting = waiting_.empty() || free_slots_.empty() ? 0 : 1;
  return std::max(0, num_running() + waiting - static_cast<int>(plan.spans.size()) - 1);
}

// Known tokens as far as the budgets go. No rows: it must wait for a step with logits rows left.
Span Scheduler::next_chunk(Sequence& sequence, const StepPlan& plan) const {
  const int begin = sequence.num_scheduled;
  const int missing = sequence.known_len() - begin;
  Span span;
  span.sequence = &sequence;
  span.first_new_id = begin;
  // At least one row, so that `reserve` is what finds the windowed group empty.
  const int window_room = std::max(1, kv_.window_room(sequence) - begin);
  span.num_tokens = whole_waves(std::min({missing, chunk_budget(sequence, plan), window_room,
                                          kv_.next_state_end(sequence, begin) - begin}),
                                plan);
  if (config_.whole_prompts && begin == 0) {
    span.num_tokens = sequence.prompt_len <= row_budget(plan) ? sequence.prompt_len : 0;
  }
  // The last prompt row's next token is output. Rows that an earlier run scored are not wanted
  // again.
  span.wants_all = sequence.scores_prompt && begin < sequence.prompt_len - 1 &&
                   begin + span.num_tokens > sequence.num_scored;
  if (span.wants_all) {
    const int most = std::max(logits_budget(plan) - num_behind(plan), 1);
    span.num_tokens = std::min({span.num_tokens, most, logits_budget(plan)});
  }
  span.samples = span.num_tokens == missing;
  if (span.max_logits_rows() > logits_budget(plan)) span.num_tokens = 0;
  return span;
}

// The row of the last known token and its drafts, which come after one row for every sequence that
// is still to be planned. No rows: the steps in flight reach the end.
Span Scheduler::next_token(Sequence& sequence, const StepPlan& plan) const {
  Span span;
  span.sequence = &sequence;
  const int room = sequence.max_len - sequence.len_floor();
  if (room <= 0 || logits_budget(plan) <= 0) return span;
  span.num_tokens = 1;
  span.samples = true;
  const int budget = std::min(row_budget(plan), logits_budget(plan)) - 1 - num_behind(plan);
  span.max_verified =
      std::max(0, std::min({sequence.max_draft_tokens, sequence.draft_bound, room - 1, budget}));
  span.had_lookups = sequence.had_lookups && span.max_verified > 0;
  return span;
}

// Takes the blocks that the span can reach and books its rows. Without blocks for the drafts to
// come it proposes none, and without blocks for those that stand it goes on without them.
Scheduler::Placement Scheduler::plan_span(StepPlan& plan, Span span) {
  Sequence& sequence = *span.sequence;
  const auto reach = [&]() -> KvBlocks::Reach {
    const int end = sequence.num_scheduled + span.num_tokens;
    if (!span.samples) return {sequence.num_scheduled + span.num_new_ids(), end};
    const int rows_end = sequence.len_bound() + span.max_verified;
    const int ids_end = rows_end + 1 + drafts_.positions_ahead(sequence, span.num_draft_tokens);
    return {std::min(ids_end, sequence.max_len), std::min(rows_end, sequence.max_len)};
  };
  const auto fits = [&] { return kv_.reserve(sequence, reach(), plan); };
  span.num_draft_tokens = span.samples ? drafts_.hoped_limit(sequence) : 0;
  span.num_lookup_tokens = span.samples ? drafts_.hoped_lookups(sequence) : 0;
  bool placed = fits();
  for (int* given_up : {&span.num_draft_tokens, &span.max_verified}) {
    if (placed || *given_up == 0) continue;
    *given_up = 0;
    placed = fits();
  }
  if (!placed) {
    // Its steps in flight leave blocks behind their windows; nobody need be preempted for those.
    const bool waits = sequence.num_inflight > 0 && kv_.only_window_is_short(sequence, reach());
    return waits ? Placement::kSkipped : Placement::kNoBlocks;
  }
  book(plan, span);
  return Placement::kPlanned;
}

void Scheduler::book(StepPlan& plan, const Span& span) {
  Sequence& sequence = *span.sequence;
  if (!sequence.caught_up) {
    int& rows = !is_paced(sequence)    ? plan.num_other_prompt_rows
                : plan.paced_limit > 0 ? plan.num_paced_rows
                                       : plan.num_lone_rows;
    rows += span.num_tokens;
    sequence.num_scheduled += span.num_tokens;
    plan.num_new_ids += span.num_new_ids();
  }
  if (span.samples) {
    sequence.caught_up = true;
    ++sequence.num_sampling;
    sequence.inflight_bound += span.max_verified + 1;
  }
  ++sequence.num_inflight;
  sequence.last_plan = num_plans_;
  plan.num_rows += span.max_rows();
  plan.num_logits_rows += span.max_logits_rows();
  plan.features |= features_of(span);
  plan.spans.push_back(span);
}

// Frees slot and blocks by preempting the sequence that runs last, now or, when a step in flight
// uses it, as soon as that is over. True when they came free now.
bool Scheduler::make_room() {
  if (num_finished_ > 0) return false;
  for (const Sequence* sequence : running_) {
    if (sequence->draining) return false;
  }
  Sequence& victim = *running_.back();
  if (victim.num_inflight > 0) {
    victim.draining = true;
    return false;
  }
  preempt(victim);
  return true;
}

// Before anything is planned, since a sequence with a span in this step could only drain.
void Scheduler::make_way_for_waiting() {
  if (waiting_.empty() || running_.empty()) return;
  const Sequence& first = *waiting_.front();
  if (first.policy_priority >= running_.back()->policy_priority) return;
  const bool rows_are_left = num_running() < config_.max_num_batched_tokens;
  if (rows_are_left && !free_slots_.empty() && finds_adapter(first) && kv_.worth_a_look(first)) {
    return;
  }
  (void)make_room();
  preempted_ = false;
}

void Scheduler::preempt(Sequence& sequence) {
  std::erase(running_, &sequence);
  kv_.leave_state(sequence);
  kv_.release(sequence);
  give_back_adapter(sequence);
  free_slots_.push_back(sequence.slot);
  sequence.slot = -1;
  sequence.draining = false;
  sequence.caught_up = false;
  sequence.num_blocks_wanted = sequence.num_window_blocks_wanted = 0;
  sequence.state = SequenceState::kWaiting;
  ++sequence.num_preemptions;
  ++stats_.num_preemptions;
  preempted_ = true;
  waiting_.push(sequence);
}

void Scheduler::plan_waiting(StepPlan& plan) {
  bool passes_adapted = false;
  while (!waiting_.empty() && !preempted_ && has_room(*waiting_.front(), plan)) {
    Sequence& first = *waiting_.front();
    passes_adapted = passes_adapted || !finds_adapter(first);
    if (passes_adapted && first.adapter != 0) {
      waiting_.remove(first);
      first.next_aside = set_aside_;
      set_aside_ = &first;
      continue;
    }
    if (!admit(first, plan)) break;
  }
  while (set_aside_ != nullptr) {
    Sequence& sequence = *std::exchange(set_aside_, set_aside_->next_aside);
    waiting_.push(sequence);
  }
}

void Scheduler::take_adapter(Sequence& sequence, StepPlan& plan) {
  if (sequence.adapter == 0) return;
  const AdapterSlots::Place place = adapters_.acquire(sequence.adapter);
  sequence.adapter_slot = place.slot;
  if (place.fresh) plan.adapter_loads.push_back({place.slot, &sequence});
}

void Scheduler::give_back_adapter(Sequence& sequence) {
  if (sequence.adapter_slot < 0) return;
  adapters_.release(sequence.adapter_slot);
  sequence.adapter_slot = -1;
}

// Whether the step can hold one more sequence's first span. A sequence's words alone always fit.
bool Scheduler::has_room(const Sequence& sequence, const StepPlan& plan) const {
  const int rows = config_.whole_prompts ? sequence.prompt_len : 1;
  const int budget = config_.whole_prompts ? row_budget(plan) : prompt_budget(plan);
  return budget >= rows && logits_budget(plan) > 0 && !free_slots_.empty() &&
         static_cast<int>(plan.spans.size()) < max_spans_ &&
         plan.num_words + sequence.num_init_words <= config_.max_init_words;
}

// Moves the first waiting sequence to the running ones when its whole prompt finds blocks.
bool Scheduler::admit(Sequence& sequence, StepPlan& plan) {
  const bool alone = running_.empty();
  if (!alone && !kv_.worth_a_look(sequence)) return false;
  ++stats_.num_lookups;
  if (!kv_.take_hits(sequence, config_.max_num_batched_tokens, alone)) return false;
  const int step_blocks = static_cast<int>(plan.blocks.size()) +
                          kv_.num_hits_to_announce(sequence) +
                          kv_.num_groups() * (kv_.blocks_for(row_budget(plan)) + 2) +
                          kv_.blocks_for(drafts_.max_positions_ahead());
  if (step_blocks > config_.max_block_assignments && !plan.spans.empty()) {
    kv_.release(sequence);
    return false;
  }
  kv_.restore_hits(sequence, plan);
  sequence.slot = free_slots_.back();
  free_slots_.pop_back();
  take_adapter(sequence, plan);
  waiting_.remove(sequence);
  running_.insert(
      std::upper_bound(running_.begin(), running_.end(), &sequence,
                       [](const Sequence* a, const Sequence* b) { return runs_before(*a, *b); }),
      &sequence);
  sequence.state = SequenceState::kRunning;
  stats_.num_prompt_tokens += sequence.known_len();
  stats_.num_hit_tokens += sequence.num_scheduled;
  kv_.announce_hits(sequence, plan);
  const int num_state_entries = kv_.bring_state(sequence, plan);
  const bool in_order = drafts_.keeps_states(sequence);
  drafts_.restart(sequence, in_order ? num_state_entries : kv_.num_exact_hits(sequence));
  const int num_hit_tokens = sequence.num_scheduled;
  const Placement placement = extend(sequence, plan);
  FT_CHECK(placement == Placement::kPlanned);
  plan.num_words += sequence.num_init_words;
  plan.spans.back().is_first = true;
  plan.spans.back().num_hit_tokens = num_hit_tokens;
  plan.spans.back().num_state_entries = in_order ? num_state_entries : 0;
  return true;
}

SequenceEvent Scheduler::reconcile(const Span& span, const Outcome& outcome) {
  Sequence& sequence = *span.sequence;
  const std::span<const int32_t> ids = outcome.ids;
  --sequence.num_inflight;
  if (span.samples) {
    --sequence.num_sampling;
    sequence.inflight_bound -= span.max_verified + 1;
  }
  if (sequence.state == SequenceState::kFinished) {
    if (sequence.num_inflight > 0) return SequenceEvent::kContinues;
    release(sequence);
    return SequenceEvent::kReleased;
  }
  FT_CHECK(sequence.known_len() + static_cast<int>(ids.size()) <= sequence.max_len);
  const int chunk_end = span.first_new_id + span.num_tokens;
  if (span.wants_all) sequence.num_scored = std::max(sequence.num_scored, chunk_end);
  if (!span.samples) sequence.num_computed = chunk_end;
  const int known_before = sequence.known_len();
  if (!ids.empty()) {
    sequence.tokens.insert(sequence.tokens.end(), ids.begin(), ids.end());
    // The last id's KV entry is written by the next step.
    sequence.num_computed = sequence.known_len() - 1;
    kv_.remember(sequence, sequence.num_computed);
  }
  note_drafter(span, outcome.draft_missing);
  drafts_.note_lookups(span, outcome.drafter, outcome.num_accepted, outcome.found_lookup);
  if (outcome.ended && !ids.empty() && !drafts_.keeps_states(sequence)) {
    kv_.note_output_state(sequence, known_before - 1, sequence.num_computed);
  }
  if (outcome.ended) return finish(sequence);
  if (sequence.draining && sequence.num_inflight == 0) {
    preempt(sequence);
  } else {
    kv_.free_behind_window(sequence);
  }
  return SequenceEvent::kContinues;
}

void Scheduler::note_drafter(const Span& span, int missing) {
  Sequence& sequence = *span.sequence;
  const int num_ids = span.samples ? sequence.known_len() : span.first_new_id + span.num_tokens;
  kv_.note_exact(sequence, drafts_.confirm(sequence, num_ids, missing));
}

void Scheduler::release(Sequence& sequence) {
  FT_CHECK(sequence.num_inflight == 0);
  kv_.leave_state(sequence);
  kv_.release(sequence);
  give_back_adapter(sequence);
  free_slots_.push_back(sequence.slot);
  sequence.slot = -1;
  --num_finished_;
  sequence.state = SequenceState::kReleased;
}

}  // namespace foretoken
