#pragma once
#include "base/result.h"
#include "device/device.h"
#include "device/known_devices.h"

namespace foretoken {

// The limits that a known device has; of all others by a large copy and a large product of this
// library's own, which takes about a second.
Result<DeviceLimits> find_device_limits(Device& device, Queue& queue);

}  // namespace foretoken
