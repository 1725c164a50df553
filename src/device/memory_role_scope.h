#pragma once
#include "device/device.h"

namespace foretoken {

// What the calling thread takes memory of a device for, to the end of a scope.
class MemoryRoleScope {
 public:
  MemoryRoleScope(Device& device, MemoryRole role)
      : device_(device), before_(device.take_for(role)) {}
  ~MemoryRoleScope() { device_.take_for(before_); }
  MemoryRoleScope(const MemoryRoleScope&) = delete;
  MemoryRoleScope& operator=(const MemoryRoleScope&) = delete;

 private:
  Device& device_;
  const MemoryRole before_;
};

}  // namespace foretoken
