#include "otlp/proto_writer.h"

#include <gtest/gtest.h>

namespace foretoken::otlp {
namespace {

using std::string_literals::operator""s;

TEST(ProtoWriter, WritesTheDocumentedBytes) {
  ProtoWriter integer;
  integer.integer(1, 150);
  EXPECT_EQ(integer.take(), "\x08\x96\x01");
  ProtoWriter text;
  text.text(2, "testing");
  EXPECT_EQ(text.take(), "\x12\x07testing");
  ProtoWriter within;
  within.integer(1, 150);
  ProtoWriter message;
  message.bytes(3, within.take());
  EXPECT_EQ(message.take(), "\x1a\x03\x08\x96\x01");
}

TEST(ProtoWriter, NumbersHaveTheirWidths) {
  ProtoWriter numbers;
  numbers.fixed32(16, 0x101);
  numbers.fixed64(7, 1);
  numbers.real(4, 1.0);
  numbers.integer(3, static_cast<uint64_t>(int64_t{-1}));
  EXPECT_EQ(numbers.take(),
            "\x85\x01\x01\x01\x00\x00"
            "\x39\x01\x00\x00\x00\x00\x00\x00\x00"
            "\x21\x00\x00\x00\x00\x00\x00\xf0\x3f"
            "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(ProtoWriter, TextsAreUtf8) {
  ProtoWriter message;
  message.text(1, "a\xff");
  EXPECT_EQ(message.take(), "\x0a\x04"s + "a\xef\xbf\xbd");
}

}  // namespace
}  // namespace foretoken::otlp
