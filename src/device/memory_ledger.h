#pragma once
#include <cstddef>
#include <mutex>
#include <vector>

#include "device/device.h"

namespace foretoken {

// Which memory of a device holds weights and KV blocks, in the order in which it was taken, so that
// it can be given back, and taken again at the same addresses. It takes none itself. Thread-safe.
class MemoryLedger {
 public:
  // Notes memory that was taken. False, and nothing is noted: it holds something else, or was taken
  // beside what is taken again.
  bool note(void* memory, size_t bytes, MemoryRole role);
  // One of those who took it needs it no longer. Whether nobody does.
  bool drop(void* memory);

  // Calls use(memory, bytes, use) for all that somebody needs.
  template <class Use>
  void for_each(Use&& use) {
    const std::lock_guard lock(mutex_);
    for (const Block& block : blocks_) {
      if (block.num_owners > 0) use(block.memory, block.bytes, block.role);
    }
  }

  // From now on `again` gives the memory of weights and scratch, in the order of `note`.
  void begin_again();
  bool is_again() const;
  // For as many bytes; null where nobody needs any more what was taken then, where it was not as
  // much, and without begin_again. It has one owner more.
  void* again(size_t bytes);
  // Whether `again` was asked for the same bytes as `note` was told, in the same order.
  bool end_again();

 private:
  struct Block {
    void* memory;
    size_t bytes;
    MemoryRole role;
    int num_owners;
  };

  size_t next_weights(size_t from) const;

  mutable std::mutex mutex_;
  std::vector<Block> blocks_;
  bool is_again_ = false;
  bool differs_ = false;
  size_t next_ = 0;  // the block that `again` is about
};

}  // namespace foretoken
