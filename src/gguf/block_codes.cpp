#include "gguf/block_codes.h"

#include <cstring>

#include "base/check.h"

namespace foretoken {
namespace {

// Where the parts of a row go.
struct RowParts {
  std::byte* codes;
  std::byte* halves;
  std::byte* bytes;
};

struct SplitType {
  uint32_t number;
  QuantForm form;
  void (*split)(const std::byte* blocks, int64_t k, const RowParts& row);
};

void copy_half(const std::byte* from, std::byte* halves, int64_t i) {
  std::memcpy(halves + 2 * i, from, 2);
}

void split_q8_0(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / 32; ++i, block += 34) {
    copy_half(block, row.halves, i);
    for (int j = 0; j < 32; ++j) row.codes[32 * i + j] = block[2 + j] ^ std::byte{0x80};
  }
}

void split_q4_0(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / 32; ++i, block += 18) {
    copy_half(block, row.halves, i);
    for (int j = 0; j < 16; ++j) {
      row.codes[32 * i + j] = block[2 + j] & std::byte{15};
      row.codes[32 * i + 16 + j] = block[2 + j] >> 4;
    }
  }
}

// The first four of eight pairs of 6 bits have bytes of their own, whose upper bits hold those of
// the last four.
void split_pairs(const std::byte* packed, std::byte* scales, std::byte* minima) {
  constexpr std::byte kLow6{63}, kLow4{15}, kHigh2{48};
  for (int i = 0; i < 4; ++i) {
    scales[i] = packed[i] & kLow6;
    minima[i] = packed[i + 4] & kLow6;
    scales[i + 4] = (packed[i + 8] & kLow4) | ((packed[i] >> 2) & kHigh2);
    minima[i + 4] = (packed[i + 8] >> 4) | ((packed[i + 4] >> 2) & kHigh2);
  }
}

void split_q4_k(const std::byte* block, int64_t k, const RowParts& row) {
  const int64_t supers = k / kSuperGroup;
  for (int64_t i = 0; i < supers; ++i, block += 144) {
    copy_half(block, row.halves, i);
    copy_half(block + 2, row.halves, supers + i);
    split_pairs(block + 4, row.bytes + 8 * i, row.bytes + 8 * (supers + i));
    for (int j = 0; j < 128; ++j) {
      std::byte* codes = row.codes + kSuperGroup * i + j / 32 * 64 + j % 32;
      codes[0] = block[16 + j] & std::byte{15};
      codes[32] = block[16 + j] >> 4;
    }
  }
}

void split_q6_k(const std::byte* block, int64_t k, const RowParts& row) {
  constexpr std::byte kLow4{15}, kHigh2{48};
  for (int64_t i = 0; i < k / kSuperGroup; ++i, block += 210) {
    copy_half(block + 208, row.halves, i);
    std::memcpy(row.bytes + 16 * i, block + 192, 16);
    for (int j = 0; j < 64; ++j) {
      const std::byte* low = block + j / 32 * 64 + j % 32;
      const std::byte high = block[128 + j];
      std::byte* codes = row.codes + kSuperGroup * i + j / 32 * 128 + j % 32;
      codes[0] = (low[0] & kLow4) | ((high << 4) & kHigh2);
      codes[32] = (low[32] & kLow4) | ((high << 2) & kHigh2);
      codes[64] = (low[0] >> 4) | (high & kHigh2);
      codes[96] = (low[32] >> 4) | ((high >> 2) & kHigh2);
    }
  }
}

constexpr SplitType kSplitTypes[] = {
    {2, {4, GroupScale::kHalf, 32}, split_q4_0},
    {8, {8, GroupScale::kHalf, 32}, split_q8_0},
    {12, {4, GroupScale::kSuper, 32}, split_q4_k},
    {14, {6, GroupScale::kSuperSigned, 16}, split_q6_k},
};

const SplitType* find_split(const BlockType& type) {
  for (const SplitType& split : kSplitTypes) {
    if (split.number == type.number) return &split;
  }
  return nullptr;
}

}  // namespace

const QuantForm* form_of_blocks(const BlockType& type) {
  const SplitType* split = find_split(type);
  return split != nullptr ? &split->form : nullptr;
}

void split_blocks(const BlockType& type, const std::byte* blocks, int64_t k, std::byte* row) {
  const SplitType* split = find_split(type);
  FT_CHECK(split != nullptr && fits_row(split->form, k));
  std::byte* halves = row + k;
  split->split(blocks, k, {row, halves, halves + 2 * quantized_row_halves(split->form, k)});
}

}  // namespace foretoken
