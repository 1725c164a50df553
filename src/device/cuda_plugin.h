#pragma once
#include <cstddef>
#include <span>

#include "device/device.h"

namespace foretoken {

// Version of the C++ types that the executable and the CUDA plug-in share, argument blocks of ops
// among them. Ops that are new, gone or moved are seen by their names.
inline constexpr int kCudaPluginAbi = 50;

// Symbols of libforetoken_cuda.so.
// extern "C" int foretoken_cuda_abi();
// extern "C" const char* foretoken_cuda_op(int number);  // its name; null behind the last one
// extern "C" foretoken::Device* foretoken_cuda_open(int ordinal, char* error, size_t error_bytes);
// A null return leaves a sentence in `error`. The caller deletes the device.
using CudaAbiFn = int (*)();
using CudaOpFn = const char* (*)(int number);
using CudaOpenFn = Device* (*)(int ordinal, char* error, size_t error_bytes);

// As open_cuda_device; Unsupported, too, unless the plug-in's ops are those with the names `ops`,
// in their order.
Result<std::unique_ptr<Device>> open_cuda_device(int ordinal, std::span<const char* const> ops);

// Before the first device of a process is opened whose ranks wait for each other on their devices:
// a kernel that is first needed then would be loaded while others spin, which the driver may not
// do. The user's own CUDA_MODULE_LOADING stays.
void load_kernels_at_start();

}  // namespace foretoken
