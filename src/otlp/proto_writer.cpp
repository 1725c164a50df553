#include "otlp/proto_writer.h"

#include <bit>

#include "text/utf8_stream.h"

namespace foretoken::otlp {

void ProtoWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) message_ += static_cast<char>(value | 0x80);
  message_ += static_cast<char>(value);
}

void ProtoWriter::tag(uint32_t field, Wire wire) {
  varint(uint64_t{field} << 3 | static_cast<uint64_t>(wire));
}

void ProtoWriter::integer(uint32_t field, uint64_t value) {
  tag(field, Wire::kVarint);
  varint(value);
}

void ProtoWriter::fixed32(uint32_t field, uint32_t value) {
  tag(field, Wire::kFixed32);
  for (int i = 0; i < 4; ++i) message_ += static_cast<char>(value >> (8 * i));
}

void ProtoWriter::fixed64(uint32_t field, uint64_t value) {
  tag(field, Wire::kFixed64);
  for (int i = 0; i < 8; ++i) message_ += static_cast<char>(value >> (8 * i));
}

void ProtoWriter::real(uint32_t field, double value) {
  fixed64(field, std::bit_cast<uint64_t>(value));
}

void ProtoWriter::bytes(uint32_t field, std::string_view value) {
  tag(field, Wire::kLength);
  varint(value.size());
  message_ += value;
}

void ProtoWriter::text(uint32_t field, std::string_view value) {
  std::string valid;
  Utf8Stream stream;
  stream.push(value, &valid);
  stream.flush(&valid);
  bytes(field, valid);
}

}  // namespace foretoken::otlp
