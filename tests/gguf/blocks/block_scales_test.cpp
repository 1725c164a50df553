#include "gguf/blocks/block_scales.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace foretoken {
namespace {

constexpr int64_t kScaleBlocks = 4000;

bool decodes_to_numbers(const BlockType& type, const std::byte* block) {
  std::vector<float> values(static_cast<size_t>(type.elements));
  type.decode(block, 1, values.data());
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// Of random blocks, in some of which every type has scales that are no numbers. Types with scales
// beyond those of halves have elements that are none, too.
TEST(BlockScales, BlocksAreUnboundedWhereTheirElementsAre) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(kScaleBlocks * 292);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  int num_types = 0;
  for (const BlockType& type : block_types()) {
    if (type.decode == nullptr || type.elements == 1) continue;
    if (type.name == "MXFP4" || type.name == "Q8_K") continue;
    int64_t unbounded = 0;
    for (int64_t i = 0; i < kScaleBlocks; ++i) {
      const std::byte* block = bytes.data() + i * type.bytes;
      const bool found = first_unbounded_block(type, block, 1) == 0;
      ASSERT_EQ(found, !decodes_to_numbers(type, block)) << type.name << ", block " << i;
      unbounded += found ? 1 : 0;
    }
    EXPECT_EQ(unbounded > 0, type.name != "NVFP4") << type.name;
    ++num_types;
  }
  EXPECT_GE(num_types, 24);
}

// Powers of two have one byte that is none.
TEST(BlockScales, TheFirstOfSeveralBlocksIsNamed) {
  for (const auto& [name, at, value] :
       {std::tuple{"Q4_1", 3, 0x7c}, {"Q6_K", 209, 0xfe}, {"MXFP4", 0, 0xff}}) {
    const BlockType& type = *find_block_type(std::string_view(name));
    std::vector<std::byte> blocks(static_cast<size_t>(5 * type.bytes));
    EXPECT_EQ(first_unbounded_block(type, blocks.data(), 5), -1) << name;
    for (const int64_t damaged : {4, 2}) {
      blocks[static_cast<size_t>(damaged * type.bytes + at)] = static_cast<std::byte>(value);
      EXPECT_EQ(first_unbounded_block(type, blocks.data(), 5), damaged) << name;
    }
  }
  const float infinite = INFINITY;
  std::vector<std::byte> floats(292);
  std::memcpy(floats.data(), &infinite, sizeof infinite);
  EXPECT_EQ(first_unbounded_block(*find_block_type("Q8_K"), floats.data(), 1), 0);
  EXPECT_EQ(first_unbounded_block(*find_block_type("F32"),
                                  reinterpret_cast<const std::byte*>(&infinite), 1),
            -1);
}

}  // namespace
}  // namespace foretoken
