#pragma once
#include <cstdint>

#include "kernels/attention/kv_layer.h"
#include "kernels/cpu/hot.h"

namespace foretoken::cpu {

// Index of a KV head's entry in a cache of KvLayer, in units of kv_entry_bytes: of place `place` in
// a block,
FT_INLINE int64_t kv_entry(const KvLayer& kv, int64_t block, int32_t kv_head, int64_t place) {
  return (block * kv.num_kv_heads + kv_head) * kv.block_size + place;
}
// and of a sequence's entry number `position` by its table of blocks.
FT_INLINE int64_t kv_entry_at(const KvLayer& kv, const int32_t* table, int32_t kv_head,
                              int32_t position) {
  return kv_entry(kv, table[position / kv.block_size], kv_head, position % kv.block_size);
}

}  // namespace foretoken::cpu
