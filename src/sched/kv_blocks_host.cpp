#include "sched/kv_blocks.h"

#include "base/check.h"

// What KvBlocks does about images in host memory.

namespace foretoken {

// Images that continue the chain of cached blocks on the device.
void KvBlocks::find_images(const Sequence& sequence) {
  host_hits_.blocks.clear();
  host_hits_.window.clear();
  host_hits_.state = kNullBlock;
  if (!host_ || sequence.bypasses_prefix_cache) return;
  PrefixLink end = sequence.cache_tail;
  for (int index = sequence.num_cached_blocks; index < max_hits(sequence); ++index) {
    const BlockId image = host_->find(parent_of(sequence, end, index), ids_of(sequence, index));
    if (image == kNullBlock) break;
    host_hits_.blocks.push_back(image);
    end = host_->link_behind(image);
  }
}

// Behind the block of that index in a sequence's chain, on the device or behind that in host
// memory.
PrefixLink KvBlocks::link_behind(const Sequence& sequence, int index) const {
  const int behind = index - static_cast<int>(sequence.blocks.size());
  return behind < 0 ? cache_.link_to(sequence.blocks[static_cast<size_t>(index)])
                    : host_->link_behind(host_hits_.blocks[static_cast<size_t>(behind)]);
}

bool KvBlocks::finds_window(const Sequence& sequence, int index, bool in_host) const {
  const bool on_device = index < static_cast<int>(sequence.blocks.size());
  if (on_device && cache_.companion(sequence.blocks[static_cast<size_t>(index)]) != kNullBlock) {
    return true;
  }
  return in_host && host_windows_ &&
         host_windows_->find(link_behind(sequence, index)) != kNullBlock;
}

// A snapshot in host memory comes back through a place on the device.
bool KvBlocks::finds_state(const Sequence& sequence, int index, bool in_host) const {
  if (!snapshots_) return true;
  const bool on_device = index < static_cast<int>(sequence.blocks.size());
  if (on_device && has_state(sequence.blocks[static_cast<size_t>(index)])) return true;
  return in_host && host_states_ && snapshots_->has_place() &&
         host_states_->find(link_behind(sequence, index)) != kNullBlock;
}

// All that is to come in is locked before anything is taken, which may need images itself.
void KvBlocks::restore_hits(Sequence& sequence, StepPlan& plan) {
  if (!host_ || sequence.bypasses_prefix_cache) return;
  const int on_device = host_hits_.num_device_blocks * config_.block_size;
  host_stats_.num_queried_tokens += sequence.known_len() - on_device;
  host_stats_.num_hit_tokens += sequence.num_scheduled - on_device;
  lock_images();
  restore_blocks(sequence, plan);
  restore_windows(sequence, plan);
  restore_state(sequence, plan);
  host_hits_.blocks.clear();
}

// The last one first, so that the end of a prefix is forgotten before its beginning.
void KvBlocks::lock_images() {
  const auto& [blocks, window, state, num_device_blocks] = host_hits_;
  for (auto image = blocks.rbegin(); image != blocks.rend(); ++image) host_->lock(*image);
  for (auto each = window.rbegin(); each != window.rend(); ++each) {
    host_windows_->lock(each->second);
  }
  if (state != kNullBlock) host_states_->lock(state);
}

void KvBlocks::restore_blocks(Sequence& sequence, StepPlan& plan) {
  for (const BlockId image : host_hits_.blocks) {
    const int index = sequence.num_cached_blocks++;
    const PrefixLink parent = parent_of(sequence, sequence.cache_tail, index);
    const BlockId before = index > 0 ? sequence.blocks.back() : -1;
    const BlockId block = take_block(plan);
    plan.moves_in.push_back({.block = block,
                             .image = image - 1,
                             .parent = before,
                             .parent_epoch = before >= 0 ? full_.epoch(before) : 0,
                             .epoch = full_.epoch(block)});
    exact_[static_cast<size_t>(block)] = host_->exact(image);
    sequence.blocks.push_back(block);
    sequence.cache_tail = cache_.insert(parent, ids_of(sequence, index), block, host_->name(image));
  }
}

void KvBlocks::restore_windows(Sequence& sequence, StepPlan& plan) {
  for (const auto& [index, image] : host_hits_.window) {
    const BlockId block = take_window_block(plan);
    plan.moves_in.push_back({.block = block, .image = image - 1, .part = HostPart::kWindowed});
    const BlockId full = sequence.blocks[static_cast<size_t>(index)];
    sequence.window_blocks[static_cast<size_t>(index)] = block;
    cache_.set_companion(full, block);
    window_names_[static_cast<size_t>(block)] = cache_.link_to(full).name;
  }
}

void KvBlocks::restore_state(const Sequence& sequence, StepPlan& plan) {
  const BlockId image = host_hits_.state;
  if (image == kNullBlock) return;
  const int snapshot = take_snapshot(sequence.blocks.back(), host_states_->exact(image), plan);
  FT_CHECK(snapshot >= 0);
  plan.moves_in.push_back({.block = snapshot, .image = image - 1, .part = HostPart::kStates});
}

// A fresh block. What it held, no step in flight writes any more, so that it can move out before
// the step that is being planned.
BlockId KvBlocks::take_block(StepPlan& plan) {
  const BlockId block = full_.allocate();
  uint8_t& exact = exact_[static_cast<size_t>(block)];
  const auto contents = host_ ? cache_.contents(block) : std::nullopt;
  if (contents) {
    const BlockId image = host_->take(*contents, exact);
    if (image != kNullBlock) plan.moves_out.push_back({.block = block, .image = image - 1});
    move_state_out(block, plan);
  }
  cache_.forget(block);
  if (snapshots_) snapshots_->forget(block);
  exact = 0;
  return block;
}

// The same of the windowed group.
BlockId KvBlocks::take_window_block(StepPlan& plan) {
  const BlockId block = windowed_->allocate();
  if (!host_windows_) return block;
  const uint64_t name = std::exchange(window_names_[static_cast<size_t>(block)], 0);
  if (name == 0) return block;
  const BlockId image = host_windows_->take({{1, name, name}, name, {}}, 0);
  if (image != kNullBlock) {
    plan.moves_out.push_back({.block = block, .image = image - 1, .part = HostPart::kWindowed});
  }
  return block;
}

void KvBlocks::drop_cached() {
  left_states_.clear();
  for (BlockId block = 1; block < full_.num_blocks(); ++block) {
    if (full_.num_refs(block) > 0) continue;
    cache_.forget(block);
    if (snapshots_ && snapshots_->find(block) >= 0) snapshots_->forget(block);
  }
  std::fill(window_names_.begin(), window_names_.end(), 0);
  for (auto* each : {&host_, &host_windows_, &host_states_}) {
    if (*each) (*each)->forget_all();
  }
}

// A place for the snapshot behind a block; -1: there is none. What it held moves out.
int KvBlocks::take_snapshot(BlockId block, uint8_t drafters, StepPlan& plan) {
  const BlockId before = snapshots_->next_to_go();
  if (before != kNullBlock) move_state_out(before, plan);
  return snapshots_->take(block, drafters);
}

// The snapshot behind a block is to be overwritten. What the plan itself writes is not there yet.
void KvBlocks::move_state_out(BlockId block, StepPlan& plan) {
  if (!host_states_) return;
  const int snapshot = snapshots_->find(block);
  if (snapshot < 0 || snapshots_->is_locked(snapshot)) return;
  const PrefixLink behind = cache_.link_to(block).content();
  const uint8_t drafters = snapshots_->drafters(snapshot);
  const BlockId image = host_states_->take({behind, behind.name, {}}, drafters);
  if (image == kNullBlock) return;
  plan.moves_out.push_back({.block = snapshot, .image = image - 1, .part = HostPart::kStates});
}

// A plan without spans is not run, and only snapshots can have moved in one.
void KvBlocks::settle_host_moves(StepPlan& plan) {
  if (!host_) return;
  if (plan.spans.empty()) {
    for (const BlockMove& move : plan.moves_out) host_states_->forget(move.image + 1);
    plan.moves_out.clear();
  }
  for (const BlockMove& move : plan.moves_out) {
    ++host_stats_.num_moved_out[static_cast<size_t>(move.part)];
  }
  for (const BlockMove& move : plan.moves_in) {
    ++host_stats_.num_moved_in[static_cast<size_t>(move.part)];
  }
  for (auto* each : {&host_, &host_windows_, &host_states_}) {
    if (*each) (*each)->end_plan();
  }
}

}  // namespace foretoken
