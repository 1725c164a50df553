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

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "gguf/blocks/block_type.h"
#include "gguf/container/gguf_value.h"

namespace foretoken {

// A metadata value as it stands in a file: its type, then what the type asks for.
using GgufBytes = std::span<const std::byte>;

// One of the files that a model is split into; most models are one file.
struct GgufPart {
  std::string path;
  std::unique_ptr<MappedFile> file;
};

// A tensor of a GGUF file.
struct GgufTensor {
  std::string name;
  const BlockType* type = nullptr;
  std::vector<int64_t> shape;      // slowest dimension first, as in safetensors
  const GgufPart* part = nullptr;  // which holds its data, as long as the GgufFile
  int64_t offset = 0;              // of its data in that file
  int64_t num_bytes = 0;
};

// A GGUF file of version 2 or 3, open for reading. Everything in front of the tensors' data is
// checked when it is opened: counts and lengths against the file's size, names, types, shapes in
// whole blocks, and data inside the file. Any part of a model that llama-gguf-split cut stands for
// all of them, which lie beside it: metadata are those of the first, tensors those of all.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
class GgufFile {
 public:
  // NotFound when the file or a part that belongs to it cannot be opened; InvalidArgument names the
  // file, what is wrong and the remedy.
  static Result<std::unique_ptr<GgufFile>> open(const std::string& path);

  // As it was named.
  const std::string& path() const { return path_; }
  std::span<const std::unique_ptr<GgufPart>> parts() const { return parts_; }
  const std::map<std::string, GgufTensor>& tensors() const { return tensors_; }

  // Copies all bytes of a tensor; errors as of TensorView::read. Any thread.
  Status read(const GgufTensor& tensor, void* to) const;

  // Metadata. `find` gives null where there is no such key; the typed ones give nothing there, and
  // InvalidArgument for a value of another kind or, for integers, beyond int64_t.
  const GgufValue* find(const std::string& key) const;
  // All of them as they stand in the file, by key.
  const std::map<std::string, GgufBytes>& raw_metadata() const { return raw_metadata_; }
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
  Status add_part(const std::string& path);
  Status add_other_parts(int64_t count);
  Status check_part(int64_t number, int64_t count) const;
  Status wrong_kind(const std::string& key, const char* wanted) const;

  std::string path_;
  std::vector<std::unique_ptr<GgufPart>> parts_;
  std::map<std::string, GgufValue> metadata_;
  std::map<std::string, GgufBytes> raw_metadata_;
  std::map<std::string, GgufTensor> tensors_;
};

// Whether a path names a GGUF file: by its ending, in capitals or not, or by what an existing file
// begins with (Ollama keeps models as sha256-...). No folder is one, whatever its name.
bool is_gguf(std::string_view path);

// A path of the form NAME-00002-of-00005.gguf, in capitals or not and with numbers of one to six
// digits, as many in both.
struct GgufSplitName {
  std::string name;
  int64_t number = 0;  // from 1 on
  int64_t count = 0;
  size_t width = 0;    // digits of a number
  std::string ending;  // from the second '-' on, as it is spelt

  std::string part(int64_t of_number) const;
};
std::optional<GgufSplitName> gguf_split_name(std::string_view path);

}  // namespace foretoken
