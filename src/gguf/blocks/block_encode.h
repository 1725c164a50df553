#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "gguf/blocks/block_type.h"

namespace foretoken {

// Writes `count` blocks of a type, of type.elements finite floats each. `importance`: as many
// numbers of what the error of each counts, or null. Without it F32, F16, BF16, Q8_0, Q4_0, Q4_1,
// Q5_0 and Q5_1 have the bytes that ggml's reference gives (round to nearest); with it, and for the
// others, scales are searched for the least squared error. Any thread.
using BlockEncode = void (*)(const float* values, const float* importance, int64_t count,
                             std::byte* blocks);

// Null for a type that is not written.
BlockEncode find_block_encode(const BlockType& type);

// block_encode_k.cpp
void encode_q4_k(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_q5_k(const float* values, const float* importance, int64_t count, std::byte* blocks);
void encode_q6_k(const float* values, const float* importance, int64_t count, std::byte* blocks);

}  // namespace foretoken
