#include "kernels/attention/cuda/flex/nvrtc_library.cuh"

#include <dlfcn.h>

#include <cstdlib>

namespace foretoken::cuda {
namespace {

// As of nvrtc.h, which the plug-in does without.
struct NvrtcLibrary {
  int (*create)(void** program, const char* source, const char* name, int num_headers,
                const char* const* headers, const char* const* names);
  int (*compile)(void* program, int num_options, const char* const* options);
  int (*code_size)(void* program, size_t* size);
  int (*code)(void* program, char* code);
  int (*log_size)(void* program, size_t* size);
  int (*log)(void* program, char* log);
  int (*destroy)(void** program);
};

template <class Function>
bool find_in(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

void* open_any() {
  const char* named = std::getenv("FORETOKEN_NVRTC");
  if (named != nullptr && *named != '\0') return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  for (const char* file :
       {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so.13",
        "/usr/local/cuda/lib64/libnvrtc.so"}) {
    if (void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

Result<NvrtcLibrary> load_nvrtc() {
  void* library = open_any();
  NvrtcLibrary found{};
  if (library != nullptr && find_in(library, "nvrtcCreateProgram", found.create) &&
      find_in(library, "nvrtcCompileProgram", found.compile) &&
      find_in(library, "nvrtcGetCUBINSize", found.code_size) &&
      find_in(library, "nvrtcGetCUBIN", found.code) &&
      find_in(library, "nvrtcGetProgramLogSize", found.log_size) &&
      find_in(library, "nvrtcGetProgramLog", found.log) &&
      find_in(library, "nvrtcDestroyProgram", found.destroy)) {
    return found;
  }
  return unsupported(
      "--flex-mask and --flex-score are compiled by libnvrtc, which cannot be opened; install "
      "cuda-nvrtc-13-0 or nvidia-cuda-nvrtc and put it on LD_LIBRARY_PATH, or name the file in "
      "FORETOKEN_NVRTC");
}

}  // namespace

Result<std::vector<char>> compile_at_run_time(const std::string& source,
                                              const std::string& architecture) {
  static const Result<NvrtcLibrary> opened = load_nvrtc();
  if (!opened.ok()) return opened.status();
  const NvrtcLibrary& nvrtc = opened.value();
  void* program = nullptr;
  if (nvrtc.create(&program, source.c_str(), "flex.cu", 0, nullptr, nullptr) != 0) {
    return internal_error("libnvrtc takes no program");
  }
  const std::string of = "--gpu-architecture=" + architecture;
  const char* options[] = {of.c_str(), "--fmad=false", "--std=c++17"};
  const bool compiled = nvrtc.compile(program, 3, options) == 0;
  size_t size = 0;
  std::vector<char> bytes;
  const bool has_size =
      (compiled ? nvrtc.code_size(program, &size) : nvrtc.log_size(program, &size)) == 0;
  if (has_size && size > 0) {
    bytes.resize(size);
    if (compiled) {
      nvrtc.code(program, bytes.data());
    } else {
      nvrtc.log(program, bytes.data());
    }
  }
  nvrtc.destroy(&program);
  if (compiled && !bytes.empty()) return bytes;
  return internal_error("libnvrtc refuses a kernel for " + architecture + ": " +
                        std::string(bytes.begin(), bytes.end()).substr(0, 500));
}

}  // namespace foretoken::cuda
