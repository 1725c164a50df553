#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/prefix_cache.h"

namespace foretoken {

// Which KV blocks host memory keeps after the device handed theirs out again: images, found by what
// they hold, least recently used given up first. Ids, never bytes; ids of images begin at 1. Keys
// are compared in full, as in the prefix cache. What a plan has looked at or taken stays until
// `end_plan`, so that the moves of a plan need no order but those to host memory first. With a
// block size of 0 of what belongs to a prefix beside its last block (windowed blocks, snapshots of
// states): keys are links behind the prefix alone. Engine thread only; allocates nothing after
// construction.
class HostBlocks {
 public:
  // `max_locked`: images that one plan looks at or takes at most.
  HostBlocks(int num_images, int block_size, int max_locked);

  int num_images() const { return pool_.num_usable(); }

  // The image of the block behind `parent` that holds exactly `ids`, or null.
  BlockId find(PrefixLink parent, std::span<const int32_t> ids = {}) const {
    return index_.find(parent.content(), ids);
  }
  // Behind what an image holds.
  PrefixLink link_behind(BlockId image) const { return {1, name(image), name(image)}; }
  uint64_t name(BlockId image) const { return index_.link_to(image).name; }
  // Bit d: the entries of drafter d are exact.
  uint8_t exact(BlockId image) const { return exact_[static_cast<size_t>(image)]; }

  // Keeps an image as it is until the plan ends; it is the last used one then.
  void lock(BlockId image);

  // The image that a block's bytes are to be copied to: null where an image holds as much already,
  // or where the plan holds all. What the image held is forgotten.
  BlockId take(const PrefixCache::Contents& contents, uint8_t exact);

  // Of an image that `take` named and that nothing was copied to.
  void forget(BlockId image) { index_.forget(image); }
  // Between plans: none is found again.
  void forget_all() {
    for (BlockId image = 1; image <= num_images(); ++image) forget(image);
  }

  // The plan is made.
  void end_plan();

 private:
  BlockPool pool_;
  PrefixCache index_;
  std::vector<uint8_t> exact_;  // by image
  std::vector<BlockId> locked_;
};

}  // namespace foretoken
