// A folder of an adapter (PEFT) against its readers: adapter_config.json up to the first byte of
// zero, then adapter_model.safetensors, or adapter_model.bin where that begins as files of
// torch.save do. What is read holds together, and goes to other ranks and back.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "model/weights/lora_adapter.h"

namespace {

namespace fs = std::filesystem;

constexpr int32_t kLargestRank = 64;
constexpr const char* kFiles[] = {"adapter_model.safetensors", "adapter_model.bin"};

void require(bool holds) {
  if (!holds) std::abort();
}

// In memory where the system has such a folder.
struct ScratchAdapter {
  ScratchAdapter() {
    std::error_code error;
    const fs::path memory = "/dev/shm";
    const fs::path root = fs::is_directory(memory, error) ? memory : fs::temp_directory_path();
    path = root / ("foretoken_fuzz_adapter_" + std::to_string(getpid()));
    fs::create_directories(path);
  }
  ~ScratchAdapter() {
    std::error_code error;
    fs::remove_all(path, error);
  }
  void write(const char* name, const uint8_t* data, size_t size) const {
    std::ofstream(path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  // Under one of the names, without the other.
  void write_weights(const uint8_t* data, size_t size) const {
    const bool torch = size > 0 && (data[0] == 'P' || data[0] == 0x80);
    std::error_code error;
    fs::remove(path / kFiles[torch ? 0 : 1], error);
    write(kFiles[torch ? 1 : 0], data, size);
  }
  fs::path path;
};

void check_adapter(const foretoken::LoraAdapter& adapter) {
  require(!adapter.linears.empty() && adapter.max_rank() <= kLargestRank);
  const size_t each = dtype_size(adapter.dtype);
  for (const foretoken::LoraLinear& linear : adapter.linears) {
    require(linear.rank > 0 && linear.inputs > 0 && linear.outputs > 0);
    require(std::isfinite(linear.scale));
    const auto rank = static_cast<size_t>(linear.rank);
    require(linear.a.size() == rank * static_cast<size_t>(linear.inputs) * each);
    require(linear.b.size() == rank * static_cast<size_t>(linear.outputs) * each);
  }
  const std::vector<std::byte> packed = pack_adapter(adapter);
  const auto again = foretoken::unpack_adapter(packed);
  require(again.ok() && pack_adapter(again.value()) == packed);
  require(!foretoken::unpack_adapter({packed.begin(), packed.end() - 1}).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchAdapter scratch;
  const uint8_t* const end = std::find(data, data + size, uint8_t{0});
  const auto config = static_cast<size_t>(end - data);
  const size_t begin = std::min(config + 1, size);
  scratch.write("adapter_config.json", data, config);
  scratch.write_weights(data + begin, size - begin);
  const std::string folder = scratch.path.string();
  for (const foretoken::DType dtype : {foretoken::DType::kF32, foretoken::DType::kBF16}) {
    const auto adapter = foretoken::read_peft_adapter(folder, dtype, kLargestRank);
    if (adapter.ok()) {
      check_adapter(adapter.value());
    } else {  // one sentence that names the file
      require(adapter.status().message().find(folder) != std::string::npos);
    }
  }
  return 0;
}
