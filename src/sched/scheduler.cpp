#include "sched/scheduler.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/result.h"

namespace foretoken {

Scheduler::Scheduler(const SchedulerConfig& config)
    : config_(config), pool_(config.num_blocks), cache_(pool_, config.block_size) {
  FT_CHECK(config.max_num_seqs > 0 && config.max_num_batched_tokens > 0 && config.block_size > 0);
  running_.reserve(config.max_num_seqs);
  for (int slot = config.max_num_seqs - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

Status Scheduler::check_fits(int prompt_len, int max_len) const {
  const int needed = blocks_for(max_len);
  if (needed <= pool_.num_usable()) return {};
  return resource_exhausted(
      "the KV cache holds " + std::to_string(pool_.num_usable() * config_.block_size) +
      " tokens, but prompt and output may reach " + std::to_string(max_len) + " (prompt " +
      std::to_string(prompt_len) +
      "); lower max_tokens, or raise --num-gpu-blocks-override or --kv-cache-memory-bytes");
}

void Scheduler::add(Sequence& sequence) {
  FT_CHECK(sequence.known_len() > 0 && sequence.known_len() < sequence.max_len);
  sequence.state = SequenceState::kWaiting;
  waiting_.push_back(sequence);
}

SequenceEvent Scheduler::finish(Sequence& sequence) {
  switch (sequence.state) {
    case SequenceState::kWaiting:
      waiting_.remove(sequence);
      sequence.state = SequenceState::kReleased;
      return SequenceEvent::kReleased;
    case SequenceState::kRunning:
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

bool Scheduler::plan(StepPlan& plan) {
  plan.clear();
  preempted_ = false;
  plan_running(plan);
  plan_waiting(plan);
  // Remembered only now: blocks that this step fills can be hit from the next step on.
  for (const Span& span : plan.spans) {
    Sequence& sequence = *span.sequence;
    if (span.first_new_id >= 0) remember_full_blocks(sequence, sequence.num_scheduled);
  }
  return !plan.spans.empty();
}

void Scheduler::plan_running(StepPlan& plan) {
  for (size_t i = 0; i < running_.size();) {
    Sequence& sequence = *running_[i];
    if (extend(sequence, plan) == Placement::kNoBlocks && make_room()) continue;
    if (i < running_.size() && running_[i] == &sequence) ++i;
  }
}

Scheduler::Placement Scheduler::extend(Sequence& sequence, StepPlan& plan) {
  if (sequence.draining || row_budget(plan) <= 0) return Placement::kSkipped;
  Span span;
  span.sequence = &sequence;
  if (!sequence.caught_up) {
    const int missing = sequence.known_len() - sequence.num_scheduled;
    span.num_tokens = std::min(missing, row_budget(plan));
    span.first_new_id = sequence.num_scheduled;
    span.samples = span.num_tokens == missing;
    return plan_span(sequence, plan, span);
  }
  const int room = sequence.max_len - sequence.len_floor();
  if (room <= 0) return Placement::kSkipped;
  span.num_tokens = 1;
  span.samples = true;
  // Drafts come after one row for every sequence that is still to be planned.
  const int num_behind =
      std::max(0, static_cast<int>(running_.size()) - static_cast<int>(plan.spans.size()) - 1);
  span.max_drafts =
      std::max(0, std::min({sequence.max_drafts, room - 1, row_budget(plan) - 1 - num_behind}));
  return plan_span(sequence, plan, span);
}

// Takes the blocks that the span can reach and books its rows. Without blocks for the drafts the
// span goes on without drafts.
Scheduler::Placement Scheduler::plan_span(Sequence& sequence, StepPlan& plan, Span span) {
  const auto reach = [&](int drafts) {
    if (!span.samples) return sequence.num_scheduled + span.num_tokens;
    return std::min(sequence.len_bound() + drafts + 1, sequence.max_len);
  };
  if (!reserve(sequence, reach(span.max_drafts), plan)) {
    span.max_drafts = 0;
    if (!reserve(sequence, reach(0), plan)) return Placement::kNoBlocks;
  }
  if (!sequence.caught_up) {
    sequence.num_scheduled += span.num_tokens;
    plan.num_new_ids += span.num_tokens;
  }
  if (span.samples) {
    sequence.caught_up = true;
    ++sequence.num_sampling;
    sequence.inflight_bound += span.max_drafts + 1;
  }
  ++sequence.num_inflight;
  plan.num_rows += span.max_rows();
  plan.spans.push_back(span);
  return Placement::kPlanned;
}

// All blocks or none: what a sequence holds is always announced by a span of the same plan, since a
// plan without spans never reaches the device.
bool Scheduler::reserve(Sequence& sequence, int len, StepPlan& plan) {
  const int needed = blocks_for(len);
  if (needed - static_cast<int>(sequence.blocks.size()) > pool_.num_free()) return false;
  while (static_cast<int>(sequence.blocks.size()) < needed) {
    const BlockId block = pool_.allocate();
    cache_.forget(block);
    plan.blocks.push_back({sequence.slot, static_cast<int>(sequence.blocks.size()), block, true});
    sequence.blocks.push_back(block);
  }
  return true;
}

// Frees blocks by preempting the youngest sequence, now or, when a step in flight uses it, as soon
// as that is over. True when blocks came free now.
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

void Scheduler::preempt(Sequence& sequence) {
  std::erase(running_, &sequence);
  release_blocks(sequence);
  sequence.draining = false;
  sequence.caught_up = false;
  sequence.num_scheduled = 0;
  sequence.state = SequenceState::kWaiting;
  ++sequence.num_preemptions;
  ++stats_.num_preemptions;
  preempted_ = true;
  waiting_.push_front(sequence);
}

void Scheduler::plan_waiting(StepPlan& plan) {
  while (!waiting_.empty() && !preempted_ && row_budget(plan) > 0 && !free_slots_.empty() &&
         static_cast<int>(plan.spans.size()) < config_.max_num_seqs) {
    if (!admit(*waiting_.front(), plan)) return;
  }
}

// Moves the first waiting sequence to the running ones when its whole prompt finds blocks.
bool Scheduler::admit(Sequence& sequence, StepPlan& plan) {
  sequence.slot = free_slots_.back();
  const size_t num_assignments = plan.blocks.size();
  const int num_hits = take_prefix_hits(sequence, plan);
  const int still_needed = blocks_for(sequence.known_len() + 1) - num_hits;
  const size_t step_blocks = plan.blocks.size() + blocks_for(row_budget(plan)) + 2;
  const bool fits =
      still_needed <= pool_.num_free() &&
      (step_blocks <= static_cast<size_t>(config_.max_block_assignments) || plan.spans.empty());
  if (!fits) {
    plan.blocks.resize(num_assignments);
    release_blocks(sequence);
    sequence.num_scheduled = 0;
    return false;
  }
  free_slots_.pop_back();
  waiting_.remove(sequence);
  running_.push_back(&sequence);
  sequence.state = SequenceState::kRunning;
  stats_.num_prompt_tokens += sequence.known_len();
  stats_.num_hit_tokens += sequence.num_scheduled;
  const int num_hit_tokens = sequence.num_scheduled;
  const Placement placement = extend(sequence, plan);
  FT_CHECK(placement == Placement::kPlanned);
  plan.spans.back().is_first = true;
  plan.spans.back().num_hit_tokens = num_hit_tokens;
  return true;
}

// The last known token always runs, so hits stop before its block.
int Scheduler::take_prefix_hits(Sequence& sequence, StepPlan& plan) {
  sequence.cache_tail = {kNullBlock, sequence.cache_salt};
  sequence.num_cached_blocks = 0;
  if (!config_.prefix_caching) return 0;
  const int most = (sequence.known_len() - 1) / config_.block_size;
  while (sequence.num_cached_blocks < most) {
    const size_t begin = static_cast<size_t>(sequence.num_cached_blocks) * config_.block_size;
    const BlockId block = cache_.find(
        sequence.cache_tail,
        std::span(sequence.tokens).subspan(begin, static_cast<size_t>(config_.block_size)));
    if (block == kNullBlock) break;
    pool_.retain(block);
    plan.blocks.push_back({sequence.slot, sequence.num_cached_blocks, block, false});
    sequence.blocks.push_back(block);
    sequence.cache_tail = cache_.link_to(block);
    ++sequence.num_cached_blocks;
  }
  sequence.num_scheduled = sequence.num_cached_blocks * config_.block_size;
  return sequence.num_cached_blocks;
}

SequenceEvent Scheduler::reconcile(const Span& span, std::span<const int32_t> ids, bool ended) {
  Sequence& sequence = *span.sequence;
  --sequence.num_inflight;
  if (span.samples) {
    --sequence.num_sampling;
    sequence.inflight_bound -= span.max_drafts + 1;
  }
  if (sequence.state == SequenceState::kFinished) {
    if (sequence.num_inflight > 0) return SequenceEvent::kContinues;
    release(sequence);
    return SequenceEvent::kReleased;
  }
  FT_CHECK(sequence.known_len() + static_cast<int>(ids.size()) <= sequence.max_len);
  sequence.tokens.insert(sequence.tokens.end(), ids.begin(), ids.end());
  // The last id's KV entry is written by the next step.
  if (!ids.empty()) remember_full_blocks(sequence, sequence.known_len() - 1);
  if (ended) return finish(sequence);
  if (sequence.draining && sequence.num_inflight == 0) preempt(sequence);
  return SequenceEvent::kContinues;
}

void Scheduler::remember_full_blocks(Sequence& sequence, int num_tokens) {
  if (!config_.prefix_caching) return;
  while ((sequence.num_cached_blocks + 1) * config_.block_size <= num_tokens) {
    const size_t index = static_cast<size_t>(sequence.num_cached_blocks);
    const auto ids = std::span<const int32_t>(sequence.tokens)
                         .subspan(index * config_.block_size, config_.block_size);
    sequence.cache_tail = cache_.insert(sequence.cache_tail, ids, sequence.blocks[index]);
    ++sequence.num_cached_blocks;
  }
}

void Scheduler::release(Sequence& sequence) {
  FT_CHECK(sequence.num_inflight == 0);
  release_blocks(sequence);
  --num_finished_;
  sequence.state = SequenceState::kReleased;
}

// Last block first, so that the end of a prefix is forgotten before its beginning.
void Scheduler::release_blocks(Sequence& sequence) {
  for (auto block = sequence.blocks.rbegin(); block != sequence.blocks.rend(); ++block) {
    pool_.release(*block);
  }
  sequence.blocks.clear();
  if (sequence.state != SequenceState::kWaiting) free_slots_.push_back(sequence.slot);
  sequence.slot = -1;
}

}  // namespace foretoken
