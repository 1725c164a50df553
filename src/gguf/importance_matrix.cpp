#include "gguf/importance_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/files/mapped_file.h"
#include "gguf/container/byte_reader.h"
#include "gguf/container/gguf_file.h"

namespace foretoken {
namespace {

constexpr const char* kMakeAgain = "; make it again with llama-imatrix";
constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

Result<std::vector<float>> read_numbers(const GgufFile& file, const std::string& name) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end() || found->second.type->name != "F32") {
    return file.error("the tensor '" + name + "' of floats is missing" + kMakeAgain);
  }
  std::vector<float> values(static_cast<size_t>(found->second.num_bytes) / sizeof(float));
  FT_RETURN_IF_ERROR(file.read(found->second, values.data()));
  return values;
}

}  // namespace

Result<std::shared_ptr<const ImportanceMatrix>> ImportanceMatrix::open(const std::string& path) {
  std::shared_ptr<ImportanceMatrix> matrix(new ImportanceMatrix(path));
  FT_ASSIGN_OR_RETURN(
      const auto file,
      MappedFile::open(path, 4, "it is no importance matrix" + std::string(kMakeAgain)));
  const bool is_gguf = std::memcmp(file->memory(), "GGUF", 4) == 0;
  FT_RETURN_IF_ERROR(is_gguf ? matrix->read_gguf() : matrix->read_old_form());
  return std::shared_ptr<const ImportanceMatrix>(std::move(matrix));
}

const std::vector<float>* ImportanceMatrix::find(const std::string& tensor) const {
  const auto found = columns_.find(tensor);
  return found == columns_.end() ? nullptr : &found->second;
}

Status ImportanceMatrix::add(const std::string& tensor, std::vector<float> columns) {
  const bool usable = !columns.empty() && std::all_of(columns.begin(), columns.end(), [](float v) {
    return std::isfinite(v) && v >= 0;
  });
  if (!usable) {
    return invalid_argument(path_ + ": what it says of '" + tensor + "' are no numbers from 0 on" +
                            kMakeAgain);
  }
  if (columns_.emplace(tensor, std::move(columns)).second) return {};
  return invalid_argument(path_ + ": '" + tensor + "' comes twice" + kMakeAgain);
}

// Sums of squares of each column, and how many rows there were, for each matrix of a tensor.
Status ImportanceMatrix::read_gguf() {
  FT_ASSIGN_OR_RETURN(const auto file, GgufFile::open(path_));
  for (const auto& [name, tensor] : file->tensors()) {
    if (!name.ends_with(kSums)) continue;
    const std::string base = name.substr(0, name.size() - kSums.size());
    FT_ASSIGN_OR_RETURN(std::vector<float> columns, read_numbers(*file, name));
    FT_ASSIGN_OR_RETURN(const std::vector<float> counts,
                        read_numbers(*file, base + std::string(kCounts)));
    if (counts.empty() || columns.size() % counts.size() != 0) {
      return file->error("the tensors of '" + base + "' do not fit one another" + kMakeAgain);
    }
    const size_t each = columns.size() / counts.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      const float count = counts[i / each];
      columns[i] = count > 0 ? columns[i] / count : 1;
    }
    FT_RETURN_IF_ERROR(add(base, std::move(columns)));
  }
  if (!columns_.empty()) return {};
  return file->error(std::string("it is no importance matrix") + kMakeAgain);
}

// Names and sums over as many runs as stand in front of them.
Status ImportanceMatrix::read_old_form() {
  FT_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path_, 4, ""));
  const Status broken =
      invalid_argument(path_ + ": it is no importance matrix, or ends too early" + kMakeAgain);
  ByteReader reader({file->memory(), file->size()});
  const auto entries = reader.number<int32_t>();
  if (entries <= 0) return broken;
  for (int32_t i = 0; i < entries; ++i) {
    const auto length = reader.number<int32_t>();
    if (length <= 0 || static_cast<size_t>(length) > reader.left()) return broken;
    const std::string name(reader.characters(static_cast<uint64_t>(length)));
    const auto runs = reader.number<int32_t>();
    const auto count = reader.number<int32_t>();
    if (!reader.ok() || count <= 0 || static_cast<size_t>(count) > reader.left() / sizeof(float)) {
      return broken;
    }
    std::vector<float> columns(static_cast<size_t>(count));
    for (float& column : columns) {
      column = reader.number<float>() / static_cast<float>(std::max(runs, 1));
    }
    FT_RETURN_IF_ERROR(add(name, std::move(columns)));
  }
  return {};
}

}  // namespace foretoken
