#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/block_pool.h"

namespace foretoken {

// Where a chain of cached blocks has come to: the last block and its epoch, or a root, which holds
// a salt so that separate users never share blocks.
struct PrefixLink {
  BlockId block = kNullBlock;  // not positive: a root
  uint64_t stamp = 0;          // the block's epoch, or the root's salt
  uint64_t name = 0;           // of all tokens up to here, as PrefixCache gave it; 0: a root
  bool operator==(const PrefixLink&) const = default;

  // Keys and values depend on the adapter that they were computed with: each load of one has a
  // number and a root of its own; 0: none.
  static PrefixLink root(int adapter, uint64_t salt) { return {-adapter, salt}; }
  // The same prefix where an adapter begins to act in the block behind it, at the position `begin`.
  PrefixLink adapted(int adapter, int begin) const;

  // The same prefix wherever its blocks lie, also when they are handed out again.
  PrefixLink content() const { return name == 0 ? *this : PrefixLink{1, name, name}; }
};

// Finds full blocks again by (link to the block before, token ids). Keys are compared in full, so
// two prompts can never be mistaken for one another. An entry dies with its block's epoch; links to
// a dead block match nothing. With windowed layers a cached block also knows its companion: the
// block that holds the same positions in the windowed group. Used by the engine thread only;
// allocates nothing after construction.
//
// Example, with blocks of 2: "a b c d" left root -> block 4 (a b) -> block 9 (c d). A prompt "a b c
// x" finds block 4 behind the root and nothing behind it. When block 4 is handed out again its
// epoch grows: the root's entry is forgotten, and block 9, whose parent is block 4 in the old
// epoch, can no longer be reached though its own tokens are still there.
class PrefixCache {
 public:
  // `windowed`: the pool of the windowed group; null: the model has none.
  PrefixCache(const BlockPool& pool, const BlockPool* windowed, int block_size);

  // The cached block after `parent` that holds exactly `ids` (block_size of them), or null.
  BlockId find(PrefixLink parent, std::span<const int32_t> ids) const;

  // Remembers `block` as the continuation of `parent` and returns the link for its own successor.
  // When an equal entry lives already, that one stays, and the link leads to it. `name`: what the
  // prefix that ends with the block is called; 0: a name that nothing has had yet.
  PrefixLink insert(PrefixLink parent, std::span<const int32_t> ids, BlockId block,
                    uint64_t name = 0);

  // What a cached block holds. Valid until the cache changes.
  struct Contents {
    PrefixLink parent;
    uint64_t name = 0;
    std::span<const int32_t> ids;
  };
  // None: the block is not cached.
  std::optional<Contents> contents(BlockId block) const;

  // Must be called when a block starts a new epoch.
  void forget(BlockId block);

  // Offers a block of the windowed group with the positions of a cached `block`. One that a
  // sequence holds already stays.
  void set_companion(BlockId block, BlockId windowed);
  // The companion of a cached block, or null when it has none or it was handed out again since.
  BlockId companion(BlockId block) const;

  PrefixLink link_to(BlockId block) const {
    return {block, pool_.epoch(block), entries_[static_cast<size_t>(block)].name};
  }
  int num_entries() const { return num_entries_; }

 private:
  struct Entry {
    PrefixLink parent;
    uint64_t name = 0;
    int32_t next = -1;  // in the bucket's chain
    bool live = false;
  };

  struct Companion {
    BlockId block = kNullBlock;
    uint32_t epoch = 0;
  };

  size_t bucket_of(PrefixLink parent, std::span<const int32_t> ids) const;
  bool matches(BlockId block, PrefixLink parent, std::span<const int32_t> ids) const;
  std::span<const int32_t> ids_of(BlockId block) const;

  const BlockPool& pool_;
  const BlockPool* windowed_;
  const int block_size_;
  std::vector<int32_t> buckets_;       // first block of each chain, -1 when empty
  std::vector<Entry> entries_;         // by block
  std::vector<int32_t> ids_;           // [num_blocks, block_size]
  std::vector<Companion> companions_;  // by block; empty without a windowed group
  uint64_t last_name_ = 0;
  int num_entries_ = 0;
};

}  // namespace foretoken
