#include "device/memory_ledger.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {

bool MemoryLedger::note(void* memory, size_t bytes, MemoryRole role) {
  if (!comes_with_weights(role) && role != MemoryRole::kBlocks) return false;
  const std::lock_guard lock(mutex_);
  if (is_again_) return false;
  blocks_.push_back({memory, bytes, role, 1});
  return true;
}

// Of several at one address, all but the last are owned by nobody.
bool MemoryLedger::drop(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto block = std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const Block& each) {
    return each.memory == memory && each.num_owners > 0;
  });
  FT_CHECK(block != blocks_.rend());
  return --block->num_owners == 0;
}

size_t MemoryLedger::next_weights(size_t from) const {
  while (from < blocks_.size() && !comes_with_weights(blocks_[from].role)) ++from;
  return from;
}

void MemoryLedger::begin_again() {
  const std::lock_guard lock(mutex_);
  is_again_ = true;
  differs_ = false;
  next_ = next_weights(0);
}

bool MemoryLedger::is_again() const {
  const std::lock_guard lock(mutex_);
  return is_again_;
}

void* MemoryLedger::again(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!is_again_ || differs_) return nullptr;
  differs_ = next_ == blocks_.size() || blocks_[next_].bytes != bytes;
  if (differs_) return nullptr;
  Block& block = blocks_[next_];
  next_ = next_weights(next_ + 1);
  if (block.num_owners == 0) return nullptr;
  ++block.num_owners;
  return block.memory;
}

bool MemoryLedger::end_again() {
  const std::lock_guard lock(mutex_);
  is_again_ = false;
  return !differs_ && next_ == blocks_.size();
}

}  // namespace foretoken
