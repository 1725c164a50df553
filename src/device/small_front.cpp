#include "device/small_front.h"

#include <algorithm>

namespace foretoken {

void prefer_small_front(Device& device, void* memory, size_t bytes) {
  if (bytes > 0) device.prefer_small_pages(memory, std::min(bytes, kSmallFront));
}

}  // namespace foretoken
