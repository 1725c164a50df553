#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace foretoken::otlp {

// Writes the fields of one protobuf message, in the order of the calls. Messages within it are
// written by writers of their own and given as bytes.
// https://protobuf.dev/programming-guides/encoding
class ProtoWriter {
 public:
  void integer(uint32_t field, uint64_t value);  // int64, uint32, enums
  void fixed32(uint32_t field, uint32_t value);
  void fixed64(uint32_t field, uint64_t value);
  void real(uint32_t field, double value);
  // A message, or bytes.
  void bytes(uint32_t field, std::string_view value);
  // A string: what is not UTF-8 in it becomes U+FFFD, as readers refuse the whole message
  // otherwise.
  void text(uint32_t field, std::string_view value);

  std::string take() { return std::move(message_); }

 private:
  enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

  void tag(uint32_t field, Wire wire);
  void varint(uint64_t value);

  std::string message_;
};

}  // namespace foretoken::otlp
