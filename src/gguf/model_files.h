#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace foretoken {

class GgufFile;

// What the weights tell where the configuration leaves it in doubt.
enum class WeightsFact {
  kTiesHead,         // the output matrix is the embedding
  kHasOutputMatrix,  // there is one at all
  kSanitisedByMlx,   // MLX's tools have changed them
  kCount
};

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
  // As `look` says, which is called the first time that the fact is asked for, whatever number of
  // readers asks; null: the weights do not tell.
  std::optional<bool> weights_fact(WeightsFact fact,
                                   const std::function<std::optional<bool>()>& look) const;

 private:
  struct Shared;
  std::filesystem::path path_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace foretoken
