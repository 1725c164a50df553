#include "kv/state_snapshots.h"

#include "base/check.h"

namespace foretoken {

StateSnapshots::StateSnapshots(int num_snapshots, int num_blocks, int max_locked)
    : pool_(num_snapshots + 1),
      of_block_(static_cast<size_t>(num_blocks)),
      block_of_(static_cast<size_t>(num_snapshots) + 1, kNullBlock),
      drafters_(static_cast<size_t>(num_snapshots) + 1) {
  FT_CHECK(num_snapshots > 0);
  vacant_.reserve(static_cast<size_t>(num_snapshots));
  locked_.reserve(static_cast<size_t>(max_locked));
  while (pool_.num_free() > 0) vacant_.push_back(pool_.allocate());
}

bool StateSnapshots::has_place() const {
  return locked_.size() < locked_.capacity() && (!vacant_.empty() || pool_.num_free() > 0);
}

BlockId StateSnapshots::next_to_go() const {
  if (!has_place() || !vacant_.empty()) return kNullBlock;
  return block_of_[static_cast<size_t>(pool_.oldest_free())];
}

int StateSnapshots::take(BlockId block, uint8_t drafters) {
  FT_CHECK(block != kNullBlock && find(block) < 0);
  if (!has_place()) return -1;
  int place = 0;
  if (!vacant_.empty()) {
    place = vacant_.back();
    vacant_.pop_back();
  } else {
    place = pool_.allocate();
    of_block_[static_cast<size_t>(block_of_[static_cast<size_t>(place)])] = 0;
    --num_kept_;
  }
  locked_.push_back(place);
  of_block_[static_cast<size_t>(block)] = place;
  block_of_[static_cast<size_t>(place)] = block;
  drafters_[static_cast<size_t>(place)] = drafters;
  ++num_kept_;
  return place - 1;
}

void StateSnapshots::lock(int snapshot) {
  FT_CHECK(locked_.size() < locked_.capacity());
  pool_.retain(snapshot + 1);
  locked_.push_back(snapshot + 1);
}

void StateSnapshots::forget(BlockId block) {
  int& place = of_block_[static_cast<size_t>(block)];
  if (place == 0) return;
  block_of_[static_cast<size_t>(place)] = kNullBlock;
  --num_kept_;
  // A locked one becomes vacant when the plan ends.
  if (pool_.num_refs(place) == 0) {
    pool_.retain(place);
    vacant_.push_back(place);
  }
  place = 0;
}

void StateSnapshots::end_plan() {
  for (const int place : locked_) {
    const bool is_last = pool_.num_refs(place) == 1;
    if (is_last && block_of_[static_cast<size_t>(place)] == kNullBlock) {
      vacant_.push_back(place);
    } else {
      pool_.release(place);
    }
  }
  locked_.clear();
}

}  // namespace foretoken
