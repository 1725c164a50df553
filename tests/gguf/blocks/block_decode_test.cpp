#include "gguf/blocks/block_decode.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// Whole blocks are compared in block_type_test.cpp; here the parts that others take apart too.
TEST(BlockDecode, PackedScales) {
  std::byte packed[12] = {};
  packed[0] = std::byte{0xc5};  // scale 0 is 5, and 3 << 4 of scale 4
  packed[4] = std::byte{0x89};  // minimum 0 is 9, and 2 << 4 of minimum 4
  packed[8] = std::byte{0x21};
  EXPECT_EQ(scale_and_min(packed, 0).scale, 5);
  EXPECT_EQ(scale_and_min(packed, 0).min, 9);
  EXPECT_EQ(scale_and_min(packed, 4).scale, 3 << 4 | 1);
  EXPECT_EQ(scale_and_min(packed, 4).min, 2 << 4 | 2);
  EXPECT_EQ(q3_k_scale(packed, 0), (5 | 1 << 4) - 32);
  EXPECT_EQ(q3_k_scale(packed, 8), (12 | 2 << 4) - 32);
  std::byte block[136] = {};
  block[2] = std::byte{0x0c};  // upper bits of scale 1
  block[4] = std::byte{0x70};
  EXPECT_EQ(iq4_xs_scale(block, 0), -32);
  EXPECT_EQ(iq4_xs_scale(block, 1), (7 | 3 << 4) - 32);
}

TEST(BlockDecode, TernaryDigits) {
  std::byte block[54] = {};
  block[0] = static_cast<std::byte>((2 * 81 * 256 + 242) / 243);  // 2, then zeros
  uint8_t digits[256];
  tq1_0_digits(block, digits);
  EXPECT_EQ(digits[0], 2);
  EXPECT_EQ(digits[32], 0);
}

}  // namespace
}  // namespace foretoken
