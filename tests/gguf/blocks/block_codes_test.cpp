#include "gguf/blocks/block_codes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace foretoken {
namespace {

// Taking blocks apart loses nothing: the floats are those of the blocks, bit for bit.
TEST(BlockCodes, HaveTheValuesOfTheBlocks) {
  constexpr int64_t kK = 768;
  int seen = 0;
  for (const BlockType& type : block_types()) {
    const QuantForm* form = form_of_blocks(type);
    if (form == nullptr) continue;
    ++seen;
    const int64_t count = kK / type.elements;
    std::mt19937 random(7);
    std::vector<std::byte> blocks(static_cast<size_t>(count * type.bytes));
    for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
    // Halves with random bits may be NaN; these bits of theirs are the exponent's highest.
    for (int64_t i = 0; i < count; ++i) {
      std::byte* block = blocks.data() + i * type.bytes;
      for (const int64_t half : {int64_t{0}, int64_t{2}, type.bytes - 4, type.bytes - 2}) {
        block[half + 1] &= std::byte{0x3f};
      }
      if (!splits_all_exactly(type)) block[0] = static_cast<std::byte>(104 + random() % 40);
    }
    EXPECT_TRUE(splits_exactly(type, blocks.data(), count)) << type.name;
    std::vector<float> want(kK), got(kK);
    type.decode(blocks.data(), count, want.data());
    std::vector<std::byte> row(static_cast<size_t>(quantized_row_bytes(*form, kK)));
    split_blocks(type, blocks.data(), kK, row.data());
    dequantize_row(*form, row.data(), kK, got.data());
    EXPECT_EQ(std::memcmp(want.data(), got.data(), kK * sizeof(float)), 0) << type.name;
    for (int64_t i = 0; i < kK; ++i) {
      ASSERT_LT(std::to_integer<int>(row[static_cast<size_t>(i)]), 1 << form->bits) << type.name;
    }
  }
  EXPECT_EQ(seen, 15);
}

// Halves reach from 2^-24 to 2^15, and the table has doubles.
TEST(BlockCodes, SayWhichPowersOfTwoTheyHold) {
  const BlockType& type = *find_block_type("MXFP4");
  std::vector<std::byte> blocks(2 * 17);
  const auto exact = [&](int first, int second, int code) {
    blocks[0] = static_cast<std::byte>(first);
    blocks[17] = static_cast<std::byte>(second);
    blocks[33] = static_cast<std::byte>(code);
    return splits_exactly(type, blocks.data(), 2);
  };
  EXPECT_TRUE(exact(104, 143, 0x71));
  EXPECT_FALSE(exact(127, 144, 0x71));
  EXPECT_FALSE(exact(127, 103, 0x10));
  EXPECT_TRUE(exact(0, 255, 0x88)) << "zeros";
  std::vector<std::byte> row(64 + 4);
  split_blocks(type, blocks.data(), 64, row.data());
  std::vector<float> values(64);
  dequantize_row(*form_of_blocks(type), row.data(), 64, values.data());
  for (const float value : values) EXPECT_EQ(value, 0.0f);
}

TEST(BlockCodes, OtherTypesHaveNone) {
  for (const uint32_t number : {0u, 1u, 30u, 16u}) {
    EXPECT_EQ(form_of_blocks(*find_block_type(number)), nullptr) << number;
  }
}

}  // namespace
}  // namespace foretoken
