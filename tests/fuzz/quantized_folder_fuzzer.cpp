// A folder of quantised weights against its readers: config.json up to the first byte of zero, then
// model.safetensors. Each matrix is read widened, whole and from the middle of a row on, and as it
// stays quantised.
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

#include "base/log.h"
#include "base/quantized_rows.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"

namespace {

namespace fs = std::filesystem;

void require(bool holds) {
  if (!holds) std::abort();
}

// In memory where the system has such a folder.
struct ScratchModel {
  ScratchModel() {
    std::error_code error;
    const fs::path memory = "/dev/shm";
    const fs::path root = fs::is_directory(memory, error) ? memory : fs::temp_directory_path();
    path = root / ("foretoken_fuzz_folder_" + std::to_string(getpid()));
    fs::create_directories(path);
    foretoken::init_logging("error");
  }
  ~ScratchModel() {
    std::error_code error;
    fs::remove_all(path, error);
  }
  void write(const char* name, const uint8_t* data, size_t size) const {
    std::ofstream(path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  fs::path path;
};

// Two scales of one group (NVFP4) are one in a row that stays quantised, and rounded before codes
// are multiplied by it, so that the last bit may differ, and what is beyond float's range.
bool nearly_same(float a, float b) {
  if (a == b || !std::isfinite(a) || !std::isfinite(b)) return true;
  return std::abs(a - b) <= 0x1p-22f * std::max(std::abs(a), std::abs(b)) + 1e-37f;
}

void check_matrix(const foretoken::TensorView& tensor) {
  constexpr int64_t kMax = 1 << 16;
  const int64_t count = tensor.num_elements(), cols = tensor.shape.back();
  if (count == 0 || count > kMax) return;
  std::vector<float> all(static_cast<size_t>(count));
  std::vector<std::byte> raw;
  require(read_elements(tensor, 0, count, foretoken::DType::kF32, all.data(), raw).ok());
  const int64_t first = cols / 2;
  std::vector<float> rest(static_cast<size_t>(count - first));
  require(
      read_elements(tensor, first, count - first, foretoken::DType::kF32, rest.data(), raw).ok());
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  require(std::equal(rest.begin(), rest.end(), all.begin() + first, same));
  const foretoken::QuantForm* form = foretoken::quantized_form(tensor);
  if (form == nullptr || !foretoken::fits_row(*form, cols)) return;
  std::vector<std::byte> row(static_cast<size_t>(foretoken::quantized_row_bytes(*form, cols)));
  require(read_quantized_rows(tensor, 0, 1, row.data(), raw).ok());
  std::vector<float> kept(static_cast<size_t>(cols));
  foretoken::dequantize_row(*form, row.data(), cols, kept.data());
  require(std::equal(kept.begin(), kept.end(), all.begin(), nearly_same));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchModel scratch;
  const uint8_t* end = std::find(data, data + size, uint8_t{0});
  const auto config = static_cast<size_t>(end - data);
  scratch.write("config.json", data, config);
  const size_t begin = std::min(config + 1, size);
  scratch.write("model.safetensors", data + begin, size - begin);
  const auto checkpoint = foretoken::Checkpoint::open(scratch.path.string());
  if (!checkpoint.ok()) {
    // An error is one sentence that names the file.
    require(checkpoint.status().message().find(scratch.path.string()) != std::string::npos);
    return 0;
  }
  for (const auto& [name, tensor] : checkpoint.value().tensors()) {
    const bool is_matrix = tensor->packed != nullptr || tensor->scaled != nullptr ||
                           (tensor->unpacked != nullptr && check_convertible(*tensor).ok());
    if (is_matrix && !tensor->shape.empty()) check_matrix(*tensor);
  }
  return 0;
}
