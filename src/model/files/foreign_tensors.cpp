#include "model/files/foreign_tensors.h"

#include <string_view>

namespace foretoken {
namespace {

// How a tensor's name ends, and who writes it, beside one with another ending where one is given.
struct ForeignEnding {
  std::string_view ending;
  const char* writer;
  std::string_view beside = {};
};

constexpr ForeignEnding kForeignEndings[] = {
    {".q_weight", "ExLlamaV2"},
    {".trellis", "ExLlamaV3"},
    {".codebooks", "AQLM"},
    {".centroids.weight", "VPTQ", ".indices"},
    {".weight._data", "optimum-quanto"},
    {".weight._data._data", "optimum-quanto"},
};

}  // namespace

Status check_foreign_tensors(const std::map<std::string, const TensorView*>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    for (const ForeignEnding& row : kForeignEndings) {
      if (!name.ends_with(row.ending)) continue;
      const std::string base = name.substr(0, name.size() - row.ending.size());
      if (!row.beside.empty() && !tensors.contains(base + std::string(row.beside))) continue;
      return unsupported(tensor->file + ": tensor '" + name + "' is of a matrix that " +
                         row.writer +
                         " wrote, which is not read; use a checkpoint of GPTQ, AWQ, "
                         "compressed-tensors, FP8 or NVFP4, the model as it was before, or a GGUF "
                         "file");
    }
  }
  return {};
}

}  // namespace foretoken
