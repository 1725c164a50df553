#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken::cuda {

// Compiles CUDA C++ to code of an architecture ("sm_90") with NVIDIA's run-time compiler, which is
// opened on the first call: libnvrtc.so beside the plug-in's libraries, on LD_LIBRARY_PATH, in
// /usr/local/cuda, or at FORETOKEN_NVRTC. Unsupported, with the remedy, where it is missing;
// Internal with the compiler's words where it refuses the source. Thread-safe.
Result<std::vector<char>> compile_at_run_time(const std::string& source,
                                              const std::string& architecture);

}  // namespace foretoken::cuda
