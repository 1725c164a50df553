#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/step_types.h"

namespace foretoken::cpu {

// Block of a slot that holds a position. The position must lie within max_blocks.
inline int32_t block_of(const BatchState& batch, int32_t slot, int32_t position) {
  return batch.block_tables[int64_t{slot} * batch.max_blocks + position / batch.block_size];
}

// The token id at a position of a slot.
inline int32_t& token_at(const BatchState& batch, int32_t slot, int32_t position) {
  return batch.token_pages[int64_t{block_of(batch, slot, position)} * batch.block_size +
                           position % batch.block_size];
}

// Writes a token id and raises the count of its page.
inline void write_token(const BatchState& batch, int32_t slot, int32_t position, int32_t id) {
  PageHeader& header = batch.page_headers[block_of(batch, slot, position)];
  header.count = std::max(header.count, position % batch.block_size + 1);
  token_at(batch, slot, position) = id;
}

}  // namespace foretoken::cpu
