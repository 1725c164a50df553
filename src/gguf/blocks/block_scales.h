#pragma once
#include <cstddef>
#include <cstdint>

#include "gguf/blocks/block_type.h"

namespace foretoken {

// The first of `count` blocks with a scale or minimum that is NaN or infinite, as no program writes
// it; -1: there is none. Types of plain numbers have no scales, nor has I2_S in its blocks; of
// NVFP4 all bytes are numbers.
int64_t first_unbounded_block(const BlockType& type, const std::byte* blocks, int64_t count);

}  // namespace foretoken
