#include "device/cuda/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace foretoken::cuda {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, NcclLibrary& nccl) {
  return find(library, "ncclGetUniqueId", nccl.get_unique_id) &&
         find(library, "ncclCommInitRank", nccl.comm_init_rank) &&
         find(library, "ncclCommDestroy", nccl.comm_destroy) &&
         find(library, "ncclCommAbort", nccl.comm_abort) &&
         find(library, "ncclCommGetAsyncError", nccl.comm_get_async_error) &&
         find(library, "ncclGroupStart", nccl.group_start) &&
         find(library, "ncclGroupEnd", nccl.group_end) &&
         find(library, "ncclAllGather", nccl.all_gather) &&
         find(library, "ncclBroadcast", nccl.broadcast) && find(library, "ncclSend", nccl.send) &&
         find(library, "ncclRecv", nccl.receive) &&
         find(library, "ncclGetErrorString", nccl.get_error_string) &&
         find(library, "ncclGetLastError", nccl.get_last_error);
}

Result<NcclLibrary> load() {
  const char* named = std::getenv("VLLM_NCCL_SO_PATH");
  const std::string file = named != nullptr && *named != '\0' ? named : "libnccl.so.2";
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return unsupported("these GPUs exchange through NCCL, which cannot be opened (" +
                       std::string(reason == nullptr ? file : reason) +
                       "); install libnccl2 or nvidia-nccl-cu13 and put it on LD_LIBRARY_PATH, or "
                       "name the file in VLLM_NCCL_SO_PATH");
  }
  NcclLibrary nccl{};
  if (find_all(library, nccl)) return nccl;
  dlclose(library);
  return unsupported(file + " is too old: NCCL 2.18 or later is needed");
}

}  // namespace

Result<const NcclLibrary*> open_nccl() {
  static const Result<NcclLibrary> opened = load();
  if (!opened.ok()) return opened.status();
  return &opened.value();
}

}  // namespace foretoken::cuda
