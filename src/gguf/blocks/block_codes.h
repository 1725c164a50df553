#pragma once
#include <cstddef>
#include <cstdint>

#include "base/quantized_rows.h"
#include "gguf/blocks/block_type.h"

namespace foretoken {

// How the blocks of a type are quantised, or null for a type of plain numbers and for one that is
// not read. The values are exactly those that BlockType::decode gives, but see splits_exactly.
const QuantForm* form_of_blocks(const BlockType& type);

// Whether the form holds the values of these blocks: it does not where powers of two (MXFP4) are
// no halves.
bool splits_exactly(const BlockType& type, const std::byte* blocks, int64_t count);
// Whether it holds those of all blocks of the type.
bool splits_all_exactly(const BlockType& type);

// Takes the blocks of a row of k elements apart (base/quantized_rows.h): writes
// quantized_row_bytes(form, k) bytes. k is a multiple of type.elements.
void split_blocks(const BlockType& type, const std::byte* blocks, int64_t k, std::byte* row);

}  // namespace foretoken
