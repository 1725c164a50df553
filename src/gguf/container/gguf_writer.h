#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/new_file.h"
#include "base/result.h"
#include "gguf/blocks/block_type.h"
#include "gguf/container/gguf_value.h"

namespace foretoken {

// Metadata as it stands in a GGUF file. Keys must differ.
class GgufKeys {
 public:
  void add_text(std::string_view key, std::string_view value);
  void add_u32(std::string_view key, uint32_t value);
  void add_f32(std::string_view key, float value);
  void add_flag(std::string_view key, bool value);
  // A value of a file, with its type.
  void add_raw(std::string_view key, std::span<const std::byte> value);
  void add_texts(std::string_view key, std::span<const std::string> values);
  void add_i32s(std::string_view key, std::span<const int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);

  uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void add_key(std::string_view key, GgufType type);
  void add_array(std::string_view key, GgufType type, uint64_t count);

  uint64_t count_ = 0;
  std::string bytes_;
};

// A tensor to write; rows must be whole blocks of its type.
struct GgufTensorEntry {
  std::string name;
  const BlockType* type = nullptr;
  std::vector<int64_t> shape;  // slowest dimension first

  int64_t num_bytes() const;
};

// Writes a GGUF file of version 3: metadata and the list of tensors first, then their bytes as they
// come. Used by one thread.
class GgufWriter {
 public:
  // Errors as of NewFile::create; InvalidArgument also where another kind of file would be
  // replaced.
  static Result<std::unique_ptr<GgufWriter>> create(const std::string& path, const GgufKeys& keys,
                                                    std::vector<GgufTensorEntry> tensors,
                                                    bool replaces);

  // The next bytes of the tensors, one tensor after the other and at most to the end of one.
  Status append(std::span<const std::byte> bytes);
  // After all bytes of all tensors.
  Status finish() { return file_->commit(); }
  int64_t size() const { return file_->size(); }

 private:
  Status pad();

  std::vector<GgufTensorEntry> tensors_;
  std::unique_ptr<NewFile> file_;
  size_t tensor_ = 0;    // which is written
  int64_t written_ = 0;  // bytes of it
};

}  // namespace foretoken
