#pragma once
#include <memory>

#include "base/result.h"
#include "device/device.h"

namespace foretoken {

// Opens the device with its op table: the CPU with `cpu_threads` threads (0: physical cores), or
// CUDA device `ordinal` through the plug-in.
Result<std::unique_ptr<Device>> open_device(DeviceType type, int ordinal, int cpu_threads);

}  // namespace foretoken
