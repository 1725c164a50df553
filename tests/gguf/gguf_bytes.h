#pragma once
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "support/folders.h"

namespace foretoken::test {

// Puts a GGUF file together, also a broken one.
class GgufBytes {
 public:
  explicit GgufBytes(uint64_t num_tensors = 0, uint64_t num_values = 0, uint32_t version = 3) {
    bytes_ = "GGUF";
    number(version).number(num_tensors).number(num_values);
  }
  template <class T>
  GgufBytes& number(T value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
    return *this;
  }
  GgufBytes& text(const std::string& value) {
    number(uint64_t{value.size()});
    bytes_ += value;
    return *this;
  }
  GgufBytes& key(const std::string& name, uint32_t type) { return text(name).number(type); }
  GgufBytes& text_value(const std::string& name, const std::string& value) {
    return key(name, 8).text(value);
  }
  GgufBytes& u32_value(const std::string& name, uint32_t value) {
    return key(name, 4).number(value);
  }
  GgufBytes& f32_value(const std::string& name, float value) { return key(name, 6).number(value); }
  GgufBytes& bool_value(const std::string& name, bool value) {
    return key(name, 7).number(static_cast<uint8_t>(value));
  }
  // `shape`: fastest dimension first, as in the file.
  GgufBytes& tensor(const std::string& name, std::initializer_list<uint64_t> shape, uint32_t type,
                    uint64_t offset) {
    text(name).number(static_cast<uint32_t>(shape.size()));
    for (const uint64_t extent : shape) number(extent);
    return number(type).number(offset);
  }
  GgufBytes& align() {
    bytes_.resize((bytes_.size() + 31) / 32 * 32);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }
  std::string write(const std::filesystem::path& path) const {
    std::ofstream(path, std::ios::binary) << bytes_;
    return path.string();
  }

 private:
  std::string bytes_;
};

inline std::string golden_gguf(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/gguf/" + name;
}

}  // namespace foretoken::test
