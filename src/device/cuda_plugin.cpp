#include "device/cuda_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace foretoken {
namespace {

constexpr const char* kPluginName = "libforetoken_cuda.so";

std::vector<std::string> candidate_paths() {
  if (const char* path = std::getenv("FORETOKEN_CUDA_PLUGIN")) return {path};
  std::vector<std::string> paths;
  Dl_info own_library;
  if (dladdr(kPluginName, &own_library) != 0 && own_library.dli_fname != nullptr) {
    const std::string text = own_library.dli_fname;
    paths.push_back(text.substr(0, text.rfind('/') + 1) + kPluginName);
  }
  char exe[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (length > 0) {
    const std::string text(exe, static_cast<size_t>(length));
    paths.push_back(text.substr(0, text.rfind('/') + 1) + kPluginName);
    paths.push_back(text.substr(0, text.rfind('/') + 1) + "../lib/" + kPluginName);
  }
  paths.emplace_back(kPluginName);
  return paths;
}

Result<void*> open_plugin() {
  void* library = nullptr;
  std::string reason;
  for (const std::string& path : candidate_paths()) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    reason = dlerror();
  }
  if (library == nullptr) {
    return unsupported("device cuda: cannot open the CUDA plug-in (" + reason +
                       "); build it with ./quickstart --cuda or use --device cpu");
  }
  return library;
}

bool has_ops(CudaOpFn name, std::span<const char* const> ops) {
  for (size_t i = 0; i < ops.size(); ++i) {
    const char* found = name(static_cast<int>(i));
    if (found == nullptr || std::strcmp(found, ops[i]) != 0) return false;
  }
  return ops.empty() || name(static_cast<int>(ops.size())) == nullptr;
}

}  // namespace

void load_kernels_at_start() { setenv("CUDA_MODULE_LOADING", "EAGER", 0); }

Result<std::unique_ptr<Device>> open_cuda_device(int ordinal) {
  return open_cuda_device(ordinal, {});
}

Result<std::unique_ptr<Device>> open_cuda_device(int ordinal, std::span<const char* const> ops) {
  FT_ASSIGN_OR_RETURN(void* library, open_plugin());
  const auto abi = reinterpret_cast<CudaAbiFn>(dlsym(library, "foretoken_cuda_abi"));
  const auto op = reinterpret_cast<CudaOpFn>(dlsym(library, "foretoken_cuda_op"));
  const auto open = reinterpret_cast<CudaOpenFn>(dlsym(library, "foretoken_cuda_open"));
  if (abi == nullptr || op == nullptr || open == nullptr || abi() != kCudaPluginAbi ||
      !has_ops(op, ops)) {
    return unsupported("device cuda: the CUDA plug-in is of another version; rebuild both");
  }
  char error[512] = "";
  Device* device = open(ordinal, error, sizeof error);
  if (device == nullptr) {
    return unsupported(std::string("device cuda: ") + error + "; use --device cpu");
  }
  return std::unique_ptr<Device>(device);
}

}  // namespace foretoken
