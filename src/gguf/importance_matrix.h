#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// What the error of each column of a model's matrices counts, as llama-imatrix measures it: the
// mean square of what the column is multiplied with.
class ImportanceMatrix {
 public:
  // Reads a GGUF file of llama-imatrix, or one of its older form (*.dat). InvalidArgument names the
  // file and what is wrong.
  static Result<std::shared_ptr<const ImportanceMatrix>> open(const std::string& path);

  // Of a tensor under its name in GGUF files: one number a column, or for a stack of matrices one a
  // column of each. Null where nothing was measured.
  const std::vector<float>* find(const std::string& tensor) const;

  const std::string& path() const { return path_; }
  size_t size() const { return columns_.size(); }

 private:
  explicit ImportanceMatrix(std::string path) : path_(std::move(path)) {}
  Status read_gguf();
  Status read_old_form();
  Status add(const std::string& tensor, std::vector<float> columns);

  std::string path_;
  std::map<std::string, std::vector<float>> columns_;
};

}  // namespace foretoken
