#pragma once
#include <cstddef>

#include "device/device.h"

namespace foretoken {

// Says that memory of the device is used from its front on, often only there. Where its pages are
// lent as they are touched, the front then takes what it needs in place of a whole huge page. A
// hint: it changes no bytes.
void expect_use_from_front(const Device& device, void* memory, size_t bytes);

}  // namespace foretoken
