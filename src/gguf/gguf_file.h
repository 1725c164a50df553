#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "gguf/block_type.h"
#include "gguf/gguf_value.h"

namespace foretoken {

// A tensor of a GGUF file.
struct GgufTensor {
  std::string name;
  const BlockType* type = nullptr;
  std::vector<int64_t> shape;  // slowest dimension first, as in safetensors
  int64_t offset = 0;          // of its data in the file
  int64_t num_bytes = 0;
};

// A GGUF file of version 2 or 3, open for reading. Everything in front of the tensors' data is
// checked when it is opened: counts and lengths against the file's size, names, types, shapes in
// whole blocks, and data inside the file.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
class GgufFile {
 public:
  // NotFound when the file cannot be opened; InvalidArgument names the file, what is wrong and the
  // remedy.
  static Result<std::unique_ptr<GgufFile>> open(const std::string& path);

  const std::string& path() const { return path_; }
  // Of the file, open as long as this object, and its content.
  int descriptor() const { return file_->descriptor(); }
  const std::byte* memory() const { return file_->memory(); }
  const std::map<std::string, GgufTensor>& tensors() const { return tensors_; }

  // Copies bytes of the file; errors as of TensorView::read. Any thread.
  Status read(int64_t first, int64_t count, void* to) const;

  // Metadata. `find` gives null where there is no such key; the typed ones give nothing there, and
  // InvalidArgument for a value of another kind or, for integers, beyond int64_t.
  const GgufValue* find(const std::string& key) const;
  Result<std::optional<int64_t>> integer(const std::string& key) const;
  Result<std::optional<double>> number(const std::string& key) const;
  Result<std::optional<std::string>> text(const std::string& key) const;
  Result<std::optional<bool>> flag(const std::string& key) const;
  // Null where there is no such key.
  Result<const std::vector<std::string>*> texts(const std::string& key) const;
  Result<std::vector<int64_t>> integers(const std::string& key) const;
  Result<std::vector<double>> numbers(const std::string& key) const;

  Status error(const std::string& what) const;

 private:
  explicit GgufFile(std::string path) : path_(std::move(path)) {}
  Status read_front();
  Status wrong_kind(const std::string& key, const char* wanted) const;

  std::string path_;
  std::unique_ptr<MappedFile> file_;
  std::map<std::string, GgufValue> metadata_;
  std::map<std::string, GgufTensor> tensors_;
};

// Whether a path names a GGUF file by its ending.
bool is_gguf(std::string_view path);

}  // namespace foretoken
