// A folder of a model as it may be published against what finds its weights and its quantisation:
// several files, each a byte that chooses its name, two bytes of its length and its bytes.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/log.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/quantization.h"
#include "model/files/kv_quantization.h"

namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"config.json",
                                  "hf_quant_config.json",
                                  "quantize_config.json",
                                  "quant_config.json",
                                  "model.safetensors.index.json",
                                  "model.safetensors",
                                  "model-00001-of-00002.safetensors",
                                  "model-00002-of-00002.safetensors",
                                  "pytorch_model.bin.index.json",
                                  "pytorch_model.bin",
                                  "pytorch_model-00001-of-00002.bin",
                                  "pytorch_model-00002-of-00002.bin"};

void require(bool holds) {
  if (!holds) std::abort();
}

// In memory where the system has such a folder.
struct ScratchFolder {
  ScratchFolder() {
    std::error_code error;
    const fs::path memory = "/dev/shm";
    const fs::path root = fs::is_directory(memory, error) ? memory : fs::temp_directory_path();
    path = root / ("foretoken_fuzz_published_" + std::to_string(getpid()));
    fs::create_directories(path);
    foretoken::init_logging("error");
  }
  ~ScratchFolder() {
    std::error_code error;
    fs::remove_all(path, error);
  }
  void fill(const uint8_t* data, size_t size) const {
    for (const char* name : kNames) {
      std::error_code error;
      fs::remove(path / name, error);
    }
    for (size_t at = 0; size - at >= 3;) {
      const char* const name = kNames[data[at] % std::size(kNames)];
      const size_t wanted = data[at + 1] + size_t{256} * data[at + 2];
      const size_t count = std::min(wanted, size - at - 3);
      std::ofstream(path / name, std::ios::binary)
          .write(reinterpret_cast<const char*>(data + at + 3), static_cast<std::streamsize>(count));
      at += 3 + count;
    }
  }
  fs::path path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder scratch;
  scratch.fill(data, size);
  const std::string folder = scratch.path.string();
  // An error is one sentence that names a file of the folder.
  const auto judge = [&](const foretoken::Status& status) {
    if (!status.ok()) require(status.message().find(folder) != std::string::npos);
  };
  judge(foretoken::read_config_json(folder).status());
  judge(foretoken::read_kv_quantization(folder).status());
  const auto checkpoint = foretoken::Checkpoint::open(folder);
  judge(checkpoint.status());
  if (!checkpoint.ok()) return 0;
  for (const auto& [name, tensor] : checkpoint.value().tensors()) {
    require(!tensor->file.empty() && tensor->num_bytes >= 0);
    judge(checkpoint.value().find(name).status());
  }
  return 0;
}
