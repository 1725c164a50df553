#include "sched/kv_blocks.h"

// What KvBlocks does about blocks in host memory.

namespace foretoken {

// Images that continue the hits on the device.
void KvBlocks::find_images(const Sequence& sequence) {
  images_.clear();
  if (!host_ || sequence.bypasses_prefix_cache) return;
  PrefixLink end = sequence.cache_tail;
  for (int index = sequence.num_cached_blocks; index < max_hits(sequence); ++index) {
    const BlockId image = host_->find(end, ids_of(sequence, index));
    if (image == kNullBlock) break;
    images_.push_back(image);
    end = host_->link_behind(image);
  }
}

// Locked before any block is taken, which may need images itself, and the last one first, so that
// the end of a prefix is forgotten before its beginning.
void KvBlocks::restore_hits(Sequence& sequence, StepPlan& plan) {
  if (!host_ || sequence.bypasses_prefix_cache) return;
  host_stats_.num_queried_tokens += sequence.known_len() - sequence.num_scheduled;
  host_stats_.num_hit_tokens += static_cast<int64_t>(images_.size()) * config_.block_size;
  host_stats_.num_moved_in += static_cast<int64_t>(images_.size());
  for (auto image = images_.rbegin(); image != images_.rend(); ++image) host_->lock(*image);
  for (const BlockId image : images_) {
    const PrefixLink parent = sequence.cache_tail;
    const int index = sequence.num_cached_blocks++;
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
  images_.clear();
  sequence.num_scheduled = sequence.num_computed = sequence.num_cached_blocks * config_.block_size;
}

// A fresh block. What it held, no step in flight writes any more, so that it can move out before
// the step that is being planned.
BlockId KvBlocks::take_block(StepPlan& plan) {
  const BlockId block = full_.allocate();
  uint8_t& exact = exact_[static_cast<size_t>(block)];
  const auto contents = host_ ? cache_.contents(block) : std::nullopt;
  if (contents) {
    const BlockId image = host_->take(*contents, exact);
    if (image != kNullBlock) {
      plan.moves_out.push_back({.block = block, .image = image - 1});
      ++host_stats_.num_moved_out;
    }
  }
  cache_.forget(block);
  if (snapshots_) snapshots_->forget(block);
  exact = 0;
  return block;
}

}  // namespace foretoken
