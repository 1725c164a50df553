#include "kv/host_blocks.h"

namespace foretoken {

HostBlocks::HostBlocks(int num_images, int block_size, int max_locked)
    : pool_(num_images + 1),
      index_(pool_, nullptr, block_size),
      exact_(static_cast<size_t>(num_images) + 1) {
  locked_.reserve(static_cast<size_t>(max_locked));
}

void HostBlocks::lock(BlockId image) {
  pool_.retain(image);
  locked_.push_back(image);
}

// An image that is known keeps its place, and its bytes unless drafters have more entries now.
BlockId HostBlocks::take(const PrefixCache::Contents& contents, uint8_t exact) {
  BlockId image = find(contents.parent, contents.ids);
  if (image != kNullBlock) {
    const bool is_locked = pool_.num_refs(image) > 0;
    const bool has_all = (exact & ~exact_[static_cast<size_t>(image)]) == 0;
    if (!is_locked) lock(image);
    if (is_locked || has_all) return kNullBlock;
  } else {
    if (pool_.num_free() == 0) return kNullBlock;
    image = pool_.allocate();
    locked_.push_back(image);
    index_.forget(image);
    index_.insert(contents.parent.content(), contents.ids, image, contents.name);
  }
  exact_[static_cast<size_t>(image)] = exact;
  return image;
}

void HostBlocks::end_plan() {
  for (const BlockId image : locked_) pool_.release(image);
  locked_.clear();
}

}  // namespace foretoken
