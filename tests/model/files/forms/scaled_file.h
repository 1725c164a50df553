#pragma once
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/files/checkpoint.h"
#include "support/scratch_folder.h"

namespace foretoken {

// A safetensors file of tensors by name, added in the order of their bytes.
class ScaledFile {
 public:
  void add(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape,
           const std::string& bytes) {
    header_[name] = {{"dtype", dtype},
                     {"shape", shape},
                     {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
    data_ += bytes;
  }
  void add_floats(const std::string& name, const std::vector<int64_t>& shape,
                  const std::vector<float>& values) {
    std::string bytes(values.size() * 4, 0);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    add(name, "F32", shape, bytes);
  }
  std::string text() const {
    std::string header = header_.dump();
    while (header.size() % 8 != 0) header += ' ';
    const uint64_t size = header.size();
    std::string all(8, 0);
    std::memcpy(all.data(), &size, 8);
    return all + header + data_;
  }

 private:
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
};

inline Result<Checkpoint> open_scaled(const test::ScratchFolder& folder, const ScaledFile& file,
                                      const nlohmann::json& quantization) {
  folder.write("config.json", nlohmann::json{{"quantization_config", quantization}}.dump());
  folder.write("model.safetensors", file.text());
  return Checkpoint::open(folder.path());
}

}  // namespace foretoken
