#include "attention/kv_cache.h"

#include <cstddef>

#include "base/check.h"
#include "device/small_front.h"
#include "kernels/latent/compress_rows.h"

namespace foretoken {
namespace {

constexpr int64_t kAlignment = 256;

// Keys and values, or keys that are both.
int64_t num_parts(const KvGroupSpec& spec) { return spec.value_dim > 0 ? 1 : 2; }

// Of one block.
int64_t bytes_of_one_part(const KvGroupSpec& spec, int32_t layer, int32_t block_size) {
  const auto index = static_cast<size_t>(layer);
  const int64_t each = index < spec.layer_bytes.size()
                           ? spec.layer_bytes[index]
                           : spec.num_kv_heads * group_entry_bytes(spec);
  return each * (block_size / spec.context_size);
}

// Of one layer that keeps such rows.
int64_t bytes_of_rows(const KvGroupSpec& spec, const KvRowsSpec& rows, int32_t block_size) {
  const int32_t sharing = rows.rope_dim > 0 ? spec.context_size : 1;
  const int64_t count = entries_of_block(block_size, rows.positions, sharing);
  const KvFormat format = rows.rope_dim > 0 ? spec.format : KvFormat::kPlain;
  return count * EntryForm{format, spec.dtype, rows.dim, rows.rope_dim}.bytes();
}

template <class Use>
void for_all_beside(const KvGroupSpec& spec, const Use& use) {
  use(spec.index);
  for (const KvRowsSpec& rows : spec.compressed) use(rows);
}

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

int64_t group_entry_bytes(const KvGroupSpec& spec) {
  if (spec.rope_dim > 0) {
    return EntryForm{spec.format, spec.dtype, spec.head_dim, spec.rope_dim}.bytes();
  }
  return kv_entry_bytes(spec.format, spec.dtype, spec.head_dim, spec.value_dim);
}

int64_t kv_bytes_per_block(const KvGroupSpec& spec, int32_t block_size) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < spec.num_layers; ++i) {
    bytes += num_parts(spec) * bytes_of_one_part(spec, i, block_size);
  }
  for_all_beside(spec, [&](const KvRowsSpec& rows) {
    bytes += rows.num_layers * bytes_of_rows(spec, rows, block_size);
  });
  return bytes;
}

KvCache::KvCache(Device& device, const KvGroupSpec& spec, int32_t num_blocks, int32_t block_size)
    : spec_(spec),
      num_blocks_(num_blocks),
      block_size_(block_size),
      arena_(device, MemoryKind::kDevice) {}

Result<std::unique_ptr<KvCache>> KvCache::create(Device& device, const KvGroupSpec& spec,
                                                 int32_t num_blocks, int32_t block_size) {
  FT_CHECK(spec.num_layers >= 0 && num_blocks > 0 && block_size > 0);
  FT_CHECK(spec.context_size > 0 && block_size % spec.context_size == 0);
  std::unique_ptr<KvCache> cache(new KvCache(device, spec, num_blocks, block_size));
  const int64_t parts = num_parts(spec);
  const auto part_of = [&](int32_t layer) {
    return aligned(bytes_of_one_part(spec, layer, block_size) * num_blocks);
  };
  int64_t all = 0;
  for (int32_t i = 0; i < spec.num_layers; ++i) all += parts * part_of(i);
  for_all_beside(spec, [&](const KvRowsSpec& rows) {
    all += rows.num_layers * aligned(bytes_of_rows(spec, rows, block_size) * num_blocks);
  });
  if (all == 0) return cache;
  FT_ASSIGN_OR_RETURN(void* memory, cache->arena_.take(static_cast<size_t>(all), "the KV cache"));
  auto* at = static_cast<std::byte*>(memory);
  for (int32_t i = 0; i < spec.num_layers; at += parts * part_of(i++)) {
    cache->layers_.push_back({.k = at,
                              .v = at + (parts - 1) * part_of(i),
                              .num_kv_heads = spec.num_kv_heads,
                              .block_size = block_size / spec.context_size,
                              .head_dim = spec.head_dim,
                              .dtype = spec.dtype,
                              .format = spec.format,
                              .value_dim = spec.value_dim,
                              .context_size = spec.context_size,
                              .context_rank = spec.context_rank});
  }
  for (int kind = 0; kind < kKindsBeside; ++kind) {
    const KvRowsSpec& rows = cache->beside(kind);
    cache->beside_[static_cast<size_t>(kind)] = at;
    at += rows.num_layers * aligned(bytes_of_rows(spec, rows, block_size) * num_blocks);
  }
  return cache;
}

std::vector<BlockPart> KvCache::block_parts() const {
  std::vector<BlockPart> parts;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const KvLayer& layer = layers_[i];
    const int64_t bytes = bytes_of_one_part(spec_, static_cast<int32_t>(i), block_size_);
    parts.push_back({static_cast<std::byte*>(layer.k), bytes});
    if (layer.v != layer.k) parts.push_back({static_cast<std::byte*>(layer.v), bytes});
  }
  for (int kind = 0; kind < kKindsBeside; ++kind) {
    const int64_t rows = bytes_of_rows(spec_, beside(kind), block_size_);
    for (int32_t i = 0; i < beside(kind).num_layers; ++i) {
      parts.push_back({static_cast<std::byte*>(beside_at(kind, i)), rows});
    }
  }
  return parts;
}

void* KvCache::beside_at(int kind, int32_t number) const {
  const KvRowsSpec& rows = beside(kind);
  if (number < 0 || number >= rows.num_layers) return nullptr;
  return beside_[static_cast<size_t>(kind)] +
         number * aligned(bytes_of_rows(spec_, rows, block_size_) * num_blocks_);
}

void KvCache::prefer_small_fronts(Device& device) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const KvLayer& layer = layers_[i];
    const int64_t bytes = bytes_of_one_part(spec_, static_cast<int32_t>(i), block_size_);
    const auto part = static_cast<size_t>(bytes * num_blocks_);
    prefer_small_front(device, layer.k, part);
    if (layer.v != layer.k) prefer_small_front(device, layer.v, part);
  }
}

}  // namespace foretoken
