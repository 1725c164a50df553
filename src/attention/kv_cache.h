#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "kernels/attention/kv_layer.h"
#include "kernels/step/move_blocks.h"

namespace foretoken {

// Rows of `dim` elements that layers keep beside keys and values, one for each `positions`
// positions of a block, or part of them: of the KV's plain type or, where some of their elements
// turn, entries of compressed_entry.h.
struct KvRowsSpec {
  int32_t dim = 0;
  int32_t positions = 1;
  int32_t num_layers = 0;
  int32_t rope_dim = 0;
  bool operator==(const KvRowsSpec&) const = default;
};

// A set of layers whose KV has one layout, or the front of it, and shares block indices.
struct KvGroupSpec {
  int32_t num_layers = 0;  // may be 0 for the full group of a model with windowed layers only
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  DType dtype = DType::kF32;
  int32_t window = 0;  // positions that a row sees, its own included; 0: all
  KvFormat format = KvFormat::kPlain;
  int32_t value_dim = 0;  // as of KvLayer
  // As of KvLayer; blocks and their size count the positions of all ranks.
  int32_t context_size = 1;
  int32_t context_rank = 0;
  // Keys of indexers, in whatever format the others are, of all positions, whichever ranks share
  // them; and compressed entries of up to two lengths (compress_rows.h), which these share, too.
  KvRowsSpec index = {};
  std::array<KvRowsSpec, 2> compressed = {};
  int32_t rope_dim = 0;  // of entries of compressed_entry.h; 0: they are as KvLayer says
  // Bytes of the keys of one position in each layer, where some have fewer or smaller heads than
  // the above, and blocks of these alone; empty: all are as above.
  std::vector<int64_t> layer_bytes = {};
  bool operator==(const KvGroupSpec&) const = default;
};

// Bytes of the key or value of one position and KV head.
int64_t group_entry_bytes(const KvGroupSpec& spec);

// Bytes of keys and values of one block of block_size positions over all layers of the group, of
// those that are this rank's.
int64_t kv_bytes_per_block(const KvGroupSpec& spec, int32_t block_size);

// The keys and values of a group for `num_blocks` blocks: one allocation, zero at the start. Block
// 0 is the null block. A group without layers takes no memory. Knows bytes, never requests. Created
// at start-up; freed when destroyed.
class KvCache {
 public:
  // block_size: positions of a block, a multiple of the spec's context_size. ResourceExhausted when
  // the memory is not there.
  static Result<std::unique_ptr<KvCache>> create(Device& device, const KvGroupSpec& spec,
                                                 int32_t num_blocks, int32_t block_size);

  const KvGroupSpec& spec() const { return spec_; }
  int32_t num_layers() const { return static_cast<int32_t>(layers_.size()); }
  int32_t num_blocks() const { return num_blocks_; }
  int32_t block_size() const { return block_size_; }
  int64_t bytes_per_block() const { return kv_bytes_per_block(spec_, block_size_); }
  int64_t num_bytes() const { return static_cast<int64_t>(arena_.bytes_taken()); }
  // Keys and values of each layer; of latents once; then index keys and compressed entries.
  std::vector<BlockPart> block_parts() const;
  const KvLayer& layer(int32_t index) const { return layers_.at(static_cast<size_t>(index)); }

  // [num_blocks, rows of a block, dim] of the layer of this number among those with an indexer, and
  // among those with compressed entries of a kind; null where there is none of it.
  void* index_keys(int32_t number) const { return beside_at(0, number); }
  void* compressed(int32_t kind, int32_t number) const { return beside_at(1 + kind, number); }

  // Asks for small pages at the front of each layer's keys and values (device/small_front.h).
  // Before the first write.
  void prefer_small_fronts(Device& device) const;

 private:
  KvCache(Device& device, const KvGroupSpec& spec, int32_t num_blocks, int32_t block_size);

  static constexpr int kKindsBeside = 3;
  const KvRowsSpec& beside(int kind) const {
    return kind == 0 ? spec_.index : spec_.compressed.at(static_cast<size_t>(kind - 1));
  }
  void* beside_at(int kind, int32_t number) const;

  KvGroupSpec spec_;
  int32_t num_blocks_;
  int32_t block_size_;
  Arena arena_;
  std::vector<KvLayer> layers_;
  std::array<std::byte*, kKindsBeside> beside_ = {};
};

// The caches that a model's forward pass reads and writes: of its full group and, where it has
// one, of its windowed group.
struct KvCaches {
  const KvCache* full = nullptr;
  const KvCache* windowed = nullptr;
};

}  // namespace foretoken
