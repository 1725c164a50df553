#include "gguf/container/byte_reader.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(ByteReader, StopsAtTheEnd) {
  const unsigned char raw[] = {1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c', 9};
  ByteReader reader(std::as_bytes(std::span(raw)));
  EXPECT_EQ(reader.number<uint16_t>(), 0x0201);
  EXPECT_EQ(reader.text(), "abc");
  EXPECT_EQ(reader.left(), 1u);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.number<uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.number<uint8_t>(), 0u);
}

TEST(ByteReader, LongTextsAreShortReads) {
  const uint64_t raw[] = {UINT64_MAX, 0};
  ByteReader reader(std::as_bytes(std::span(raw)));
  EXPECT_EQ(reader.text(), "");
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace foretoken
