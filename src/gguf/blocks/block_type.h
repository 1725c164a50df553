#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace foretoken {

// How a GGUF tensor stores its elements: along a row in blocks of `elements`, each of `bytes`. The
// layouts are those of ggml (ggml-quants.h, "block_q8_0" and others).
struct BlockType {
  uint32_t number;
  std::string_view name;
  int64_t elements;
  int64_t bytes;
  // Writes the floats of `count` blocks; null: the type is known, but not read.
  void (*decode)(const std::byte* blocks, int64_t count, float* out);
};

// All types with a number, those that are not read included.
std::span<const BlockType> block_types();

// Null for a number without a type.
const BlockType* find_block_type(uint32_t number);
const BlockType* find_block_type(std::string_view name);

// Types that files of one program alone have under a number that ggml gave away: I2_S of bitnet.cpp
// (36), ternary codes with one scale behind all rows of a matrix, which decode as -1, 0 and 1. Null
// for other numbers.
const BlockType* find_bitnet_type(uint32_t number);
// Bytes behind the blocks of a tensor of the type that belong to it, a float in front; 0: none.
int64_t gguf_tail_bytes(const BlockType& type);

}  // namespace foretoken
