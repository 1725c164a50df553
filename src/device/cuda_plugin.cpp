#include "device/cuda_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
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

}  // namespace

void load_kernels_at_start() { setenv("CUDA_MODULE_LOADING", "EAGER", 0); }

Result<std::unique_ptr<Device>> open_cuda_device(int ordinal) {
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
  const auto abi = reinterpret_cast<CudaAbiFn>(dlsym(library, "foretoken_cuda_abi"));
  const auto open = reinterpret_cast<CudaOpenFn>(dlsym(library, "foretoken_cuda_open"));
  if (abi == nullptr || open == nullptr || abi() != kCudaPluginAbi) {
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
