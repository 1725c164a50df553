#pragma once
#include <cstddef>

#include "device/device.h"

namespace foretoken {

// Version of the interface between the executable and the CUDA plug-in; both must agree, since
// they share C++ types.
inline constexpr int kCudaPluginAbi = 23;

// Symbols of libforetoken_cuda.so.
// extern "C" int foretoken_cuda_abi();
// extern "C" foretoken::Device* foretoken_cuda_open(int ordinal, char* error, size_t error_bytes);
// A null return leaves a sentence in `error`. The caller deletes the device.
using CudaAbiFn = int (*)();
using CudaOpenFn = Device* (*)(int ordinal, char* error, size_t error_bytes);

// Before the first device of a process is opened whose ranks wait for each other on their devices:
// a kernel that is first needed then would be loaded while others spin, which the driver may not
// do. The user's own CUDA_MODULE_LOADING stays.
void load_kernels_at_start();

}  // namespace foretoken
