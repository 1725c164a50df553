#include "gguf/blocks/block_type.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/files/text_file.h"
#include "gguf/gguf_bytes.h"

namespace foretoken {
namespace {

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// The floats that ggml's own Python package makes of the blocks, bit for bit.
TEST(BlockType, DecodesAsGgmlDoes) {
  size_t seen = 0;
  const auto text = read_text_file(test::golden_gguf("blocks.json"));
  ASSERT_TRUE(text.ok());
  const auto cases = nlohmann::json::parse(text.value());
  ASSERT_EQ(cases.size(), 23u);
  for (const BlockType& type : block_types()) {
    if (!cases.contains(type.name)) continue;
    ++seen;
    const auto& golden = cases[std::string(type.name)];
    const auto blocks = from_hex(golden["blocks"]);
    const auto wanted = from_hex(golden["floats"]);
    ASSERT_EQ(std::ssize(blocks), 3 * type.bytes) << type.name;
    std::vector<float> floats(static_cast<size_t>(3 * type.elements));
    ASSERT_EQ(wanted.size(), floats.size() * sizeof(float));
    type.decode(blocks.data(), 3, floats.data());
    EXPECT_EQ(std::memcmp(floats.data(), wanted.data(), wanted.size()), 0) << type.name;
  }
  EXPECT_EQ(seen, cases.size());
}

// Types of sums and products, which no file holds but some programs write.
TEST(BlockType, DecodesWhatThePackageDoesNot) {
  std::vector<std::byte> q8_1(36), q8_k(292);
  q8_1[1] = std::byte{0x38};  // 1/2
  q8_1[4] = std::byte{0xfe};  // -2
  const float scale = 0.25F;
  std::memcpy(q8_k.data(), &scale, sizeof scale);
  q8_k[4] = std::byte{3};
  std::vector<float> out(256);
  find_block_type("Q8_1")->decode(q8_1.data(), 1, out.data());
  EXPECT_EQ(out[0], -1.0F);
  find_block_type("Q8_K")->decode(q8_k.data(), 1, out.data());
  EXPECT_EQ(out[0], 0.75F);
  const double number = 1.5;
  find_block_type("F64")->decode(reinterpret_cast<const std::byte*>(&number), 1, out.data());
  EXPECT_EQ(out[0], 1.5F);
}

// By ggml's C code, which its Python package does not have.
TEST(BlockType, OneAndTwoBits) {
  std::vector<std::byte> ones(18), twos(18);
  ones[1] = twos[1] = std::byte{0x38};  // 1/2
  ones[2] = std::byte{0b101};
  ones[17] = std::byte{0x80};
  twos[2] = std::byte{0b11100100};
  std::vector<float> out(128);
  find_block_type("Q1_0")->decode(ones.data(), 1, out.data());
  EXPECT_EQ(std::vector(out.begin(), out.begin() + 4), std::vector({0.5F, -0.5F, 0.5F, -0.5F}));
  EXPECT_EQ(out[126], -0.5F);
  EXPECT_EQ(out[127], 0.5F);
  find_block_type("Q2_0")->decode(twos.data(), 1, out.data());
  EXPECT_EQ(std::vector(out.begin(), out.begin() + 5),
            std::vector({-0.5F, 0.0F, 0.5F, 1.0F, -0.5F}));
}

TEST(BlockType, PlainTypes) {
  const float f32[] = {1.5F, -2};
  const uint16_t f16[] = {0x3e00, 0xc000}, bf16[] = {0x3fc0, 0xc000};
  for (const auto& [name, data] :
       {std::pair<const char*, const void*>("F32", f32), {"F16", f16}, {"BF16", bf16}}) {
    for (const BlockType& type : block_types()) {
      if (type.name != name) continue;
      float out[2] = {};
      type.decode(static_cast<const std::byte*>(data), 2, out);
      EXPECT_EQ(out[0], 1.5F) << name;
      EXPECT_EQ(out[1], -2.0F) << name;
    }
  }
}

// Of bitnet.cpp: elements 32 apart in one byte, the first in the highest bits.
TEST(BlockType, TernaryCodesOfBitnet) {
  const BlockType* type = find_bitnet_type(36);
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->name, "I2_S");
  std::vector<std::byte> block(32, std::byte{0x55});
  block[3] = std::byte{0b10'00'01'10};
  std::vector<float> out(128);
  type->decode(block.data(), 1, out.data());
  EXPECT_EQ(out[3], 1);
  EXPECT_EQ(out[35], -1);
  EXPECT_EQ(out[67], 0);
  EXPECT_EQ(out[99], 1);
  EXPECT_EQ(out[4], 0);
  EXPECT_EQ(gguf_tail_bytes(*type), 32);
  EXPECT_EQ(gguf_tail_bytes(*find_block_type(8)), 0);
  EXPECT_EQ(find_bitnet_type(8), nullptr);
  EXPECT_EQ(find_block_type(36), nullptr);
}

TEST(BlockType, UnknownNumbers) {
  EXPECT_EQ(find_block_type(8)->name, "Q8_0");
  EXPECT_EQ(find_block_type(4), nullptr);
  EXPECT_EQ(find_block_type("Q9_9"), nullptr);
  EXPECT_EQ(find_block_type(UINT32_MAX), nullptr);
}

}  // namespace
}  // namespace foretoken
