#include "kv/block_pool.h"

#include "base/check.h"

namespace foretoken {

BlockPool::BlockPool(int num_blocks)
    : next_(num_blocks), prev_(num_blocks), refs_(num_blocks, 0), epochs_(num_blocks, 0) {
  FT_CHECK(num_blocks >= 2);
  refs_[kNullBlock] = 1;
  for (BlockId block = 1; block < num_blocks; ++block) link_last(block);
}

BlockId BlockPool::allocate() {
  FT_CHECK(num_free_ > 0);
  const BlockId block = oldest_free();
  unlink(block);
  refs_[block] = 1;
  ++epochs_[block];
  return block;
}

void BlockPool::retain(BlockId block) {
  FT_CHECK(block != kNullBlock);
  if (refs_[block]++ == 0) unlink(block);
}

void BlockPool::release(BlockId block) {
  FT_CHECK(block != kNullBlock && refs_[block] > 0);
  if (--refs_[block] == 0) link_last(block);
}

void BlockPool::link_last(BlockId block) {
  const BlockId last = prev_[kNullBlock];
  next_[last] = block;
  prev_[block] = last;
  next_[block] = kNullBlock;
  prev_[kNullBlock] = block;
  ++num_free_;
}

void BlockPool::unlink(BlockId block) {
  next_[prev_[block]] = next_[block];
  prev_[next_[block]] = prev_[block];
  --num_free_;
}

}  // namespace foretoken
