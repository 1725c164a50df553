#include "device/front_use.h"

#include <algorithm>

#include "device/cpu/page_block.h"

namespace foretoken {

void expect_use_from_front(const Device& device, void* memory, size_t bytes) {
  if (device.type() != DeviceType::kCpu) return;
  cpu::use_plain_pages(memory, std::min(bytes, cpu::PageBlock::kHugePage));
}

}  // namespace foretoken
