#pragma once
#include "base/result.h"
#include "device/device.h"

namespace foretoken {

// What a device can do at most; kernels are judged by it.
struct DeviceLimits {
  double bytes_per_second = 0;  // read from its memory
  double flops_per_second = 0;  // of matrix products of bfloat16

  // The least seconds for so much, when both go on at once.
  double seconds(double bytes, double flops) const;
};

// The limits of devices that were measured by other means (docs/performance.md); of all others by a
// large copy and a large product of this library's own, which takes about a second.
Result<DeviceLimits> find_device_limits(Device& device, Queue& queue);

}  // namespace foretoken
