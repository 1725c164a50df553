#pragma once
#include <atomic>
#include <cstdint>

namespace foretoken {

// A word in host-visible memory that only grows. The queue stores step numbers into it with
// release order (system scope on CUDA); a host thread waits for a value through Queue::wait.
// The memory comes from Device::allocate(kPinned) and is borrowed here.
struct Event {
  std::atomic<uint64_t>* word = nullptr;
};

static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t));

}  // namespace foretoken
