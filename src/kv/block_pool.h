#pragma once
#include <cstdint>
#include <vector>

namespace foretoken {

using BlockId = int32_t;

// Block 0 is never handed out: padding writes and reads go there.
inline constexpr BlockId kNullBlock = 0;

// Reference counts and the free list of KV blocks: ids, never bytes. Free blocks are handed out
// least recently released first, so that what the prefix cache remembers lives longest. Used by the
// engine thread only; allocates nothing after construction.
class BlockPool {
 public:
  // `num_blocks` counts the null block.
  explicit BlockPool(int num_blocks);

  int num_blocks() const { return static_cast<int>(refs_.size()); }
  // Blocks that can ever be handed out.
  int num_usable() const { return num_blocks() - 1; }
  int num_free() const { return num_free_; }
  int num_refs(BlockId block) const { return refs_[block]; }

  // The block that `allocate` takes. num_free() > 0.
  BlockId oldest_free() const { return next_[kNullBlock]; }
  // Takes the oldest free block and starts a new epoch of it; one reference. num_free() > 0.
  BlockId allocate();
  // Adds a holder; a free block leaves the free list with its contents kept.
  void retain(BlockId block);
  // Drops a holder; the last one returns the block to the free list.
  void release(BlockId block);

  // How often the block was handed out; changes when its contents die.
  uint32_t epoch(BlockId block) const { return epochs_[block]; }

 private:
  void link_last(BlockId block);
  void unlink(BlockId block);

  // A circular list through block 0.
  std::vector<BlockId> next_;
  std::vector<BlockId> prev_;
  std::vector<int32_t> refs_;
  std::vector<uint32_t> epochs_;
  int num_free_ = 0;
};

}  // namespace foretoken
