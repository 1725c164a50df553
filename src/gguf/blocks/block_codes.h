#pragma once
#include <cstddef>
#include <cstdint>

#include "base/quantized_rows.h"
#include "gguf/blocks/block_type.h"

namespace foretoken {

// How the blocks of a type are quantised, or null for a type of plain numbers and for one that is
// not read. The values are exactly those that BlockType::decode gives.
const QuantForm* form_of_blocks(const BlockType& type);

// Takes the blocks of a row of k elements apart (base/quantized_rows.h): writes
// quantized_row_bytes(form, k) bytes. k is a multiple of type.elements.
void split_blocks(const BlockType& type, const std::byte* blocks, int64_t k, std::byte* row);

}  // namespace foretoken
