#include "kv/prefix_cache.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace foretoken {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdull;
  return hash ^ (hash >> 33);
}

}  // namespace

// Of numbers that no block's epoch, nothing's name and no other such beginning has.
PrefixLink PrefixLink::adapted(int adapter, int begin) const {
  constexpr uint64_t kMade = uint64_t{1} << 63;
  const uint64_t key = mix(static_cast<uint32_t>(adapter), static_cast<uint32_t>(begin));
  const uint64_t own = name != 0 ? name : mix(stamp, static_cast<uint64_t>(block));
  return {block, mix(key, stamp) | kMade, mix(key, own) | kMade};
}

PrefixCache::PrefixCache(const BlockPool& pool, const BlockPool* windowed, int block_size)
    : pool_(pool),
      windowed_(windowed),
      block_size_(block_size),
      buckets_(std::bit_ceil(static_cast<size_t>(pool.num_blocks()) * 2), -1),
      entries_(pool.num_blocks()),
      ids_(static_cast<size_t>(pool.num_blocks()) * block_size),
      companions_(windowed != nullptr ? static_cast<size_t>(pool.num_blocks()) : 0) {}

size_t PrefixCache::bucket_of(PrefixLink parent, std::span<const int32_t> ids) const {
  uint64_t hash = mix(static_cast<uint64_t>(parent.block), parent.stamp);
  for (const int32_t id : ids) hash = mix(hash, static_cast<uint32_t>(id));
  return hash & (buckets_.size() - 1);
}

std::span<const int32_t> PrefixCache::ids_of(BlockId block) const {
  return {ids_.data() + static_cast<size_t>(block) * block_size_, static_cast<size_t>(block_size_)};
}

bool PrefixCache::matches(BlockId block, PrefixLink parent, std::span<const int32_t> ids) const {
  const std::span<const int32_t> own = ids_of(block);
  return entries_[block].parent == parent && std::equal(own.begin(), own.end(), ids.begin());
}

BlockId PrefixCache::find(PrefixLink parent, std::span<const int32_t> ids) const {
  FT_CHECK(static_cast<int>(ids.size()) == block_size_);
  for (BlockId block = buckets_[bucket_of(parent, ids)]; block >= 0; block = entries_[block].next) {
    if (matches(block, parent, ids)) return block;
  }
  return kNullBlock;
}

PrefixLink PrefixCache::insert(PrefixLink parent, std::span<const int32_t> ids, BlockId block,
                               uint64_t name) {
  FT_CHECK(block != kNullBlock && pool_.num_refs(block) > 0);
  if (const BlockId known = find(parent, ids); known != kNullBlock) return link_to(known);
  Entry& entry = entries_[block];
  FT_CHECK_MSG(!entry.live, "a block enters the prefix cache once an epoch");
  int32_t& bucket = buckets_[bucket_of(parent, ids)];
  entry = {parent, name != 0 ? name : ++last_name_, bucket, true};
  bucket = block;
  std::copy(ids.begin(), ids.end(), ids_.begin() + static_cast<size_t>(block) * block_size_);
  ++num_entries_;
  return link_to(block);
}

std::optional<PrefixCache::Contents> PrefixCache::contents(BlockId block) const {
  const Entry& entry = entries_[static_cast<size_t>(block)];
  if (!entry.live) return std::nullopt;
  return Contents{entry.parent, entry.name, ids_of(block)};
}

void PrefixCache::forget(BlockId block) {
  Entry& entry = entries_[block];
  if (!entry.live) return;
  int32_t* at = &buckets_[bucket_of(entry.parent, ids_of(block))];
  while (*at != block) at = &entries_[*at].next;
  *at = entry.next;
  entry = {};
  --num_entries_;
  if (windowed_ != nullptr) companions_[block] = {};
}

void PrefixCache::set_companion(BlockId block, BlockId windowed) {
  FT_CHECK(entries_[block].live && windowed_ != nullptr && windowed != kNullBlock);
  const BlockId known = companion(block);
  if (known != kNullBlock && windowed_->num_refs(known) > 0) return;
  companions_[block] = {windowed, windowed_->epoch(windowed)};
}

BlockId PrefixCache::companion(BlockId block) const {
  const Companion& known = companions_[block];
  const bool alive = known.block != kNullBlock && windowed_->epoch(known.block) == known.epoch;
  return alive ? known.block : kNullBlock;
}

}  // namespace foretoken
