#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace foretoken {

// Reads little-endian values from memory and never past its end: after a short read `ok` is false
// and every further value is zero or empty.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    T value{};
    if (take(sizeof value))
      std::memcpy(&value, bytes_.data() + position_ - sizeof value, sizeof value);
    return value;
  }
  // A byte count (u64), then the bytes.
  std::string_view text() { return characters(number<uint64_t>()); }
  std::string_view characters(uint64_t size) {
    if (!take(size)) return {};
    return {reinterpret_cast<const char*>(bytes_.data() + position_ - size), size};
  }

  bool ok() const { return ok_; }
  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

 private:
  bool take(uint64_t count) {
    ok_ = ok_ && count <= left();
    if (ok_) position_ += count;
    return ok_;
  }

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace foretoken
