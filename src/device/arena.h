#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace foretoken {

// Owns device memory taken at start-up and frees it all at the end; nothing is freed in between.
// Not thread-safe: used by the start-up thread.
class Arena {
 public:
  Arena(Device& device, MemoryKind kind) : Arena(&device, kind) {}
  // Of device memory for `role`, whatever else the thread takes memory for.
  Arena(Device& device, MemoryRole role) : Arena(&device, role) {}
  // A null device: nothing is taken; `take` counts and gives null.
  Arena(Device* device, MemoryKind kind) : device_(device), kind_(kind) {}
  Arena(Device* device, MemoryRole role)
      : device_(device), kind_(MemoryKind::kDevice), role_(role) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Zero-filled, 256-byte aligned. ResourceExhausted names `what` and the size.
  Result<void*> take(size_t bytes, const char* what);

  template <class T>
  Result<T*> take_array(size_t count, const char* what) {
    FT_ASSIGN_OR_RETURN(void* memory, take(count * sizeof(T), what));
    return static_cast<T*>(memory);
  }

  size_t bytes_taken() const { return bytes_taken_; }

 private:
  void* allocate(size_t bytes);

  Device* device_;
  MemoryKind kind_;
  std::optional<MemoryRole> role_;  // none: that of the thread
  std::vector<void*> blocks_;
  size_t bytes_taken_ = 0;
};

}  // namespace foretoken
