#pragma once
#include <dlfcn.h>

#include <cstdlib>

namespace foretoken {

// Whether GPUs could exchange through NCCL: libnccl.so.2, or what VLLM_NCCL_SO_PATH names, opens.
inline bool has_nccl() {
  const char* named = std::getenv("VLLM_NCCL_SO_PATH");
  return dlopen(named != nullptr && *named != '\0' ? named : "libnccl.so.2", RTLD_LAZY) != nullptr;
}

}  // namespace foretoken
