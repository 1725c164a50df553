#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace foretoken {

class GgufFile;

// A model as files: its folder, or a GGUF file, which is opened and parsed once, when something
// first asks for it. Copies share the file. Any thread.
class ModelFiles {
 public:
  ModelFiles(std::filesystem::path path);                                           // NOLINT
  ModelFiles(const std::string& path) : ModelFiles(std::filesystem::path(path)) {}  // NOLINT
  ModelFiles(const char* path) : ModelFiles(std::filesystem::path(path)) {}         // NOLINT

  const std::filesystem::path& path() const { return path_; }
  std::string text() const { return path_.string(); }
  // By the path's ending.
  bool is_gguf() const;
  // Errors as of GgufFile::open. Only where `is_gguf`.
  Result<std::shared_ptr<const GgufFile>> gguf() const;
  // Whether the weights tie the output matrix to the embedding, where they were asked for that
  // because the config leaves it in doubt; null: they do not tell. `look` is called once, whatever
  // number of readers asks.
  std::optional<bool> ties_head(const std::function<std::optional<bool>()>& look) const;

 private:
  struct Shared;
  std::filesystem::path path_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace foretoken
