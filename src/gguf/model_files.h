#pragma once
#include <filesystem>
#include <memory>
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

 private:
  struct Shared;
  std::filesystem::path path_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace foretoken
