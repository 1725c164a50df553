#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "sched/kv_blocks.h"

// What KvBlocks does about snapshots of recurrent layers' states.

namespace foretoken {
namespace {

// Blocks of an output between two snapshots, of which the later takes the place of the earlier.
constexpr int kOutputSpacing = 2;

}  // namespace

// Of a prompt: its last full block, but for the few tokens with which chat templates open the
// answer, and which the next turn may not have.
int KvBlocks::last_state_end(const Sequence& sequence) const {
  const int end = sequence.known_len() - 1 - config_.block_size / 2;
  return std::max(end, 0) / config_.block_size * config_.block_size;
}

// Example: blocks of 16, a prompt of 200 tokens whose first 96 another prompt had, too, with a
// snapshot behind 32 of them. It begins at 32. Its chunks end at 96, where others will leave it
// again, and at 176, where its own next turn will come back.
int KvBlocks::next_state_end(const Sequence& sequence, int begin) const {
  int next = std::numeric_limits<int>::max();
  if (!snapshots_) return next;
  for (const int end : {sequence.branch, last_state_end(sequence)}) {
    if (end > begin) next = std::min(next, end);
  }
  return next;
}

void KvBlocks::note_state(Sequence& sequence, uint8_t drafters) const {
  const int end = sequence.num_scheduled;
  if (!snapshots_ || end != sequence.num_cached_blocks * config_.block_size) return;
  if (end != sequence.branch && end != last_state_end(sequence)) return;
  const BlockId block = sequence.cache_tail.block;
  sequence.kept_state = {block, full_.epoch(block), drafters};
  sequence.last_state_len = end;
}

void KvBlocks::note_output_state(Sequence& sequence, int begin, int end) {
  if (!snapshots_) return;
  end = end / config_.block_size * config_.block_size;
  if (end < begin || end < sequence.last_state_len + kOutputSpacing * config_.block_size) {
    return;
  }
  remember(sequence, end);
  if (end != sequence.num_cached_blocks * config_.block_size) return;
  const BlockId block = sequence.cache_tail.block;
  sequence.kept_state = {block, full_.epoch(block), 0};
  sequence.last_state_len = end;
  const StateToKeep before = std::exchange(sequence.output_state, sequence.kept_state);
  if (before.block != kNullBlock && full_.epoch(before.block) == before.epoch) {
    snapshots_->forget(before.block);
  }
}

// The block may be another one by now, or have got a snapshot from a sequence of the same tokens.
void KvBlocks::plan_state(int slot, const StateToKeep& state, StepPlan& plan) {
  if (full_.epoch(state.block) != state.epoch || has_state(state.block)) return;
  if (plan.states_out.size() >= static_cast<size_t>(2 * config_.max_num_seqs)) return;
  const int snapshot = take_snapshot(state.block, state.drafters, plan);
  if (snapshot < 0) return;
  plan.states_out.push_back({.slot = slot, .snapshot = snapshot, .block = state.block});
}

void KvBlocks::begin_plan(StepPlan& plan) {
  for (const LeftState& left : left_states_) plan_state(left.slot, left.state, plan);
  left_states_.clear();
}

void KvBlocks::keep_state(Sequence& sequence, StepPlan& plan) {
  const StateToKeep state = std::exchange(sequence.kept_state, {});
  if (state.block != kNullBlock) plan_state(sequence.slot, state, plan);
}

void KvBlocks::leave_state(Sequence& sequence) {
  const StateToKeep state = std::exchange(sequence.kept_state, {});
  const bool is_full = left_states_.size() == left_states_.capacity();
  if (state.block != kNullBlock && !is_full) left_states_.push_back({sequence.slot, state});
}

// The drafter's entries may be missing in blocks that another sequence of the same tokens filled.
int KvBlocks::bring_state(const Sequence& sequence, StepPlan& plan) {
  if (!snapshots_ || sequence.blocks.empty()) return 0;
  const BlockId block = sequence.blocks.back();
  const int snapshot = snapshots_->find(block);
  FT_CHECK(snapshot >= 0);
  snapshots_->lock(snapshot);
  plan.states_in.push_back({.slot = sequence.slot, .snapshot = snapshot, .block = block});
  const bool has_drafter = (snapshots_->drafters(snapshot) >> sequence.drafter & 1) != 0;
  const int num_tokens = sequence.num_scheduled;
  return has_drafter && num_exact_hits(sequence) == num_tokens ? num_tokens : 0;
}

// A plan without spans is not run, and what it was to keep stays where it is.
void KvBlocks::end_plan(StepPlan& plan) {
  if (snapshots_ && !plan.spans.empty()) begin_plan(plan);
  settle_host_moves(plan);
  if (!snapshots_) return;
  if (plan.spans.empty()) {
    for (const StateMove& move : plan.states_out) {
      const uint8_t drafters = snapshots_->drafters(move.snapshot);
      left_states_.push_back({move.slot, {move.block, full_.epoch(move.block), drafters}});
      snapshots_->forget(move.block);
    }
    plan.states_out.clear();
  }
  snapshots_->end_plan();
}

}  // namespace foretoken
