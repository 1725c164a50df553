// A file's bytes against the reader of torch.save's files: zip archive, pickle and tensors.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "model/files/containers/torch_file.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A file in memory where the system has such a folder.
std::string scratch_path() {
  std::error_code error;
  const std::filesystem::path memory = "/dev/shm";
  const auto folder = std::filesystem::is_directory(memory, error)
                          ? memory
                          : std::filesystem::temp_directory_path();
  return (folder / ("foretoken_fuzz_" + std::to_string(getpid()) + ".bin")).string();
}

struct ScratchFile {
  ~ScratchFile() {
    std::error_code error;
    std::filesystem::remove(path, error);
  }
  const std::string path = scratch_path();
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFile scratch;
  std::ofstream(scratch.path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto file = foretoken::TorchFile::open(scratch.path);
  if (!file.ok()) {
    // An error is one sentence that names the file.
    require(file.status().message().find(scratch.path) != std::string::npos);
    return 0;
  }
  for (const auto& [name, tensor] : file.value()->tensors()) {
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.num_bytes));
    require(tensor.read(0, tensor.num_bytes, bytes.data()).ok());
    require(tensor.num_bytes == 0 || std::equal(bytes.begin(), bytes.end(), tensor.data));
  }
  return 0;
}
