#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "gguf/block_type.h"

namespace foretoken {

// Writes `count` blocks of a type, of type.elements finite floats each. F32, F16, BF16, Q8_0 and
// Q4_0 have the bytes that ggml's reference gives (round to nearest); Q4_K and Q6_K search scales
// for the least squared error. Any thread.
using BlockEncode = void (*)(const float* values, int64_t count, std::byte* blocks);

// Null for a type that is not written.
BlockEncode find_block_encode(const BlockType& type);

// block_encode_k.cpp
void encode_q4_k(const float* values, int64_t count, std::byte* blocks);
void encode_q6_k(const float* values, int64_t count, std::byte* blocks);

}  // namespace foretoken
