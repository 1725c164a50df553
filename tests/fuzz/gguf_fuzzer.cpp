// A file's bytes against everything that reads GGUF files: its front, the texts that are made of
// its metadata, its tensors, widened and taken apart as when a model is loaded, and the file as an
// importance matrix.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gguf/container/gguf_file.h"
#include "gguf/importance_matrix.h"
#include "gguf/model_files.h"
#include "gguf/model_texts.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"

namespace {

using foretoken::DType;
using foretoken::Status;
using foretoken::TensorView;

constexpr int64_t kMaxElements = 700;  // of a tensor, from each end

void require(bool holds) {
  if (!holds) std::abort();
}

// A file in memory where the system has such a folder.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    const std::filesystem::path memory = "/dev/shm";
    const auto folder = std::filesystem::is_directory(memory, error)
                            ? memory
                            : std::filesystem::temp_directory_path();
    path_ = (folder / ("foretoken_fuzz_" + std::to_string(getpid()) + ".gguf")).string();
  }
  ~Scratch() {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// An error is one sentence that names the file.
void judge(const Status& status, const std::string& path) {
  if (!status.ok()) require(status.message().find(path) != std::string::npos);
}

void widen(const TensorView& tensor, int64_t first, int64_t count) {
  std::vector<std::byte> raw;
  std::vector<float> floats(static_cast<size_t>(count));
  std::vector<uint16_t> bits(static_cast<size_t>(count));
  judge(read_elements(tensor, first, count, DType::kF32, floats.data(), raw), tensor.file);
  judge(read_elements(tensor, first, count, DType::kBF16, bits.data(), raw), tensor.file);
}

// The first row, which has the values of the widened one where both are numbers and the form holds
// them.
void take_apart(const TensorView& tensor) {
  const foretoken::QuantForm* form = quantized_form(tensor);
  const bool fits = form != nullptr && tensor.shape.size() == 2 && tensor.shape[0] > 0 &&
                    tensor.shape[1] <= kMaxElements && fits_row(*form, tensor.shape[1]);
  if (!fits) return;
  const auto k = static_cast<size_t>(tensor.shape[1]);
  std::vector<std::byte> row(static_cast<size_t>(quantized_row_bytes(*form, tensor.shape[1]))), raw;
  std::vector<float> widened(k), kept(k);
  if (!read_quantized_rows(tensor, 0, 1, row.data(), raw).ok()) return;
  if (!read_elements(tensor, 0, tensor.shape[1], DType::kF32, widened.data(), raw).ok()) return;
  dequantize_row(*form, row.data(), tensor.shape[1], kept.data());
  const auto keeps = keeps_values(tensor);
  judge(keeps.status(), tensor.file);
  if (!keeps.ok() || !keeps.value()) return;
  for (size_t i = 0; i < k; ++i) {
    if (std::isfinite(widened[i])) require(kept[i] == widened[i]);
  }
}

void read_tensors(const foretoken::ModelFiles& model) {
  const auto checkpoint = foretoken::Checkpoint::open(model);
  if (!checkpoint.ok()) return judge(checkpoint.status(), model.text());
  for (const auto& [name, tensor] : checkpoint.value().tensors()) {
    const Status status = check_convertible(*tensor);
    judge(status, model.text());
    const int64_t elements = tensor->num_elements();
    if (!status.ok() || elements == 0) continue;
    const int64_t count = std::min(elements, kMaxElements);
    widen(*tensor, 0, count);
    widen(*tensor, elements - count, count);
    widen(*tensor, elements / 2, 1);
    take_apart(*tensor);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Scratch scratch;
  std::ofstream(scratch.path(), std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  judge(foretoken::ImportanceMatrix::open(scratch.path()).status(), scratch.path());
  const foretoken::ModelFiles model(scratch.path());
  judge(model.gguf().status(), scratch.path());
  if (!model.gguf().ok()) return 0;
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}) {
    judge(read_model_text(model, name).status(), scratch.path());
  }
  read_tensors(model);
  return 0;
}
