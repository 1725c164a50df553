#include "gguf/blocks/block_codes.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "gguf/blocks/block_decode.h"

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

// Low and high halves of 16 bytes.
void split_nibbles(const std::byte* packed, std::byte* codes) {
  for (int j = 0; j < 16; ++j) {
    codes[j] = packed[j] & std::byte{15};
    codes[16 + j] = packed[j] >> 4;
  }
}

void split_q4_0(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / 32; ++i, block += 18) {
    copy_half(block, row.halves, i);
    split_nibbles(block + 2, row.codes + 32 * i);
  }
}

// A word of upper bits in front of 16 bytes of lower ones.
void split_five_bits(const std::byte* word, std::byte* codes) {
  split_nibbles(word + 4, codes);
  const auto upper = number_at<uint32_t>(word);
  for (int j = 0; j < 32; ++j) codes[j] |= static_cast<std::byte>((upper >> j & 1) << 4);
}

// Blocks add a minimum, rows subtract one.
void copy_negated(const std::byte* from, std::byte* halves, int64_t i) {
  copy_half(from, halves, i);
  halves[2 * i + 1] ^= std::byte{0x80};
}

void split_q4_1(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / 32; ++i, block += 20) {
    copy_half(block, row.halves, i);
    copy_negated(block + 2, row.halves, k / 32 + i);
    split_nibbles(block + 4, row.codes + 32 * i);
  }
}

void split_q5_0(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / 32; ++i, block += 22) {
    copy_half(block, row.halves, i);
    split_five_bits(block + 2, row.codes + 32 * i);
  }
}

void split_q5_1(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / 32; ++i, block += 24) {
    copy_half(block, row.halves, i);
    copy_negated(block + 2, row.halves, k / 32 + i);
    split_five_bits(block + 4, row.codes + 32 * i);
  }
}

// The first four of eight pairs of 6 bits have bytes of their own, whose upper bits hold those of
// the last four.
void split_pairs(const std::byte* packed, std::byte* scales, std::byte* minima) {
  for (int i = 0; i < 8; ++i) {
    const ScaleAndMin pair = scale_and_min(packed, i);
    scales[i] = static_cast<std::byte>(pair.scale);
    minima[i] = static_cast<std::byte>(pair.min);
  }
}

// Two bits of each of 256 codes.
void split_twos(const std::byte* packed, std::byte* codes) {
  for (int j = 0; j < 256; ++j) {
    codes[j] = (packed[j / 128 * 32 + j % 32] >> (j % 128 / 32 * 2)) & std::byte{3};
  }
}

void split_q2_k(const std::byte* block, int64_t k, const RowParts& row) {
  const int64_t supers = k / kSuperGroup;
  for (int64_t i = 0; i < supers; ++i, block += 84) {
    copy_half(block + 80, row.halves, i);
    copy_half(block + 82, row.halves, supers + i);
    for (int64_t j = 0; j < 16; ++j) {
      row.bytes[16 * i + j] = block[j] & std::byte{15};
      row.bytes[16 * (supers + i) + j] = block[j] >> 4;
    }
    split_twos(block + 16, row.codes + kSuperGroup * i);
  }
}

void split_q3_k(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / kSuperGroup; ++i, block += 110) {
    copy_half(block + 108, row.halves, i);
    for (int j = 0; j < 16; ++j) {
      row.bytes[16 * i + j] = static_cast<std::byte>(q3_k_scale(block + 96, j));
    }
    std::byte* codes = row.codes + kSuperGroup * i;
    split_twos(block + 32, codes);
    for (int j = 0; j < 256; ++j) codes[j] |= ((block[j % 32] >> (j / 32)) & std::byte{1}) << 2;
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

void split_q5_k(const std::byte* block, int64_t k, const RowParts& row) {
  const int64_t supers = k / kSuperGroup;
  for (int64_t i = 0; i < supers; ++i, block += 176) {
    copy_half(block, row.halves, i);
    copy_half(block + 2, row.halves, supers + i);
    split_pairs(block + 4, row.bytes + 8 * i, row.bytes + 8 * (supers + i));
    for (int j = 0; j < 256; ++j) {
      const std::byte pair = block[48 + j / 64 * 32 + j % 32];
      const std::byte upper = (block[16 + j % 32] >> (j / 32)) & std::byte{1};
      row.codes[kSuperGroup * i + j] = (j % 64 < 32 ? pair & std::byte{15} : pair >> 4) | upper
                                                                                              << 4;
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

void split_iq4_nl(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / 32; ++i, block += 18) {
    copy_half(block, row.halves, i);
    split_nibbles(block + 2, row.codes + 32 * i);
  }
}

void split_iq4_xs(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / kSuperGroup; ++i, block += 136) {
    copy_half(block, row.halves, i);
    for (int j = 0; j < 8; ++j) {
      row.bytes[8 * i + j] = static_cast<std::byte>(iq4_xs_scale(block, j));
      split_nibbles(block + 8 + 16 * j, row.codes + kSuperGroup * i + 32 * j);
    }
  }
}

constexpr uint32_t kMxfp4 = 39;
constexpr int64_t kMxfp4Bytes = 17;

// The power of two that multiplies the numbers of CodeTable::kE2m1, which are doubled.
int mxfp4_exponent(const std::byte* block) { return byte_number_at(block) - 128; }

bool is_power_of_half(int exponent) { return exponent >= -24 && exponent <= 15; }

// 0 for what no half is: see splits_exactly.
uint16_t half_of_power(int exponent) {
  if (!is_power_of_half(exponent)) return 0;
  return static_cast<uint16_t>(exponent < -14 ? 1 << (exponent + 24) : (exponent + 15) << 10);
}

void split_mxfp4(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / 32; ++i, block += kMxfp4Bytes) {
    const uint16_t half = half_of_power(mxfp4_exponent(block));
    std::memcpy(row.halves + 2 * i, &half, sizeof half);
    split_nibbles(block + 1, row.codes + 32 * i);
  }
}

// Codes less one: the scale is the minimum too.
void copy_twice(const std::byte* half, const RowParts& row, int64_t i, int64_t supers) {
  copy_half(half, row.halves, i);
  copy_half(half, row.halves, supers + i);
}

void split_tq1_0(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / kSuperGroup; ++i, block += 54) {
    copy_twice(block + 52, row, i, k / kSuperGroup);
    uint8_t digits[256];
    tq1_0_digits(block, digits);
    std::memcpy(row.codes + kSuperGroup * i, digits, sizeof digits);
  }
}

void split_tq2_0(const std::byte* block, int64_t k, const RowParts& row) {
  for (int64_t i = 0; i < k / kSuperGroup; ++i, block += 66) {
    copy_twice(block + 64, row, i, k / kSuperGroup);
    split_twos(block, row.codes + kSuperGroup * i);
  }
}

constexpr SplitType kSplitTypes[] = {
    {2, {4, GroupScale::kHalf, 32}, split_q4_0},
    {8, {8, GroupScale::kHalf, 32}, split_q8_0},
    {12, {4, GroupScale::kSuper, 32}, split_q4_k},
    {14, {6, GroupScale::kSuperSigned, 16}, split_q6_k},
    {3, {4, GroupScale::kHalfAndMinimum, 32}, split_q4_1},
    {6, {5, GroupScale::kHalf, 32}, split_q5_0},
    {7, {5, GroupScale::kHalfAndMinimum, 32}, split_q5_1},
    {10, {2, GroupScale::kSuper, 16}, split_q2_k},
    {11, {3, GroupScale::kSuperSigned, 16}, split_q3_k},
    {13, {5, GroupScale::kSuper, 32}, split_q5_k},
    {20, {4, GroupScale::kHalf, 32, CodeTable::kIq4}, split_iq4_nl},
    {23, {4, GroupScale::kSuperSigned, 32, CodeTable::kIq4}, split_iq4_xs},
    {34, {2, GroupScale::kHalfAndMinimum, 256}, split_tq1_0},
    {35, {2, GroupScale::kHalfAndMinimum, 256}, split_tq2_0},
    {kMxfp4, {4, GroupScale::kHalf, 32, CodeTable::kE2m1, true}, split_mxfp4},
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

bool splits_all_exactly(const BlockType& type) { return type.number != kMxfp4; }

// Blocks of zeros have any power.
bool splits_exactly(const BlockType& type, const std::byte* blocks, int64_t count) {
  if (splits_all_exactly(type)) return true;
  for (; count > 0; --count, blocks += kMxfp4Bytes) {
    if (is_power_of_half(mxfp4_exponent(blocks))) continue;
    const auto is_zero = [](std::byte pair) { return (pair & std::byte{0x77}) == std::byte{0}; };
    if (!std::all_of(blocks + 1, blocks + kMxfp4Bytes, is_zero)) return false;
  }
  return true;
}

void split_blocks(const BlockType& type, const std::byte* blocks, int64_t k, std::byte* row) {
  const SplitType* split = find_split(type);
  FT_CHECK(split != nullptr && fits_row(split->form, k));
  std::byte* halves = row + k;
  split->split(blocks, k, {row, halves, halves + 2 * quantized_row_halves(split->form, k)});
}

}  // namespace foretoken
