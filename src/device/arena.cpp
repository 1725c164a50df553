#include "device/arena.h"

#include <string>

#include "device/memory_role_scope.h"

namespace foretoken {

Arena::~Arena() {
  for (void* block : blocks_) device_->deallocate(block, kind_);
}

void* Arena::allocate(size_t bytes) {
  if (!role_) return device_->allocate(bytes, kind_);
  const MemoryRoleScope scope(*device_, *role_);
  return device_->allocate(bytes, kind_);
}

Result<void*> Arena::take(size_t bytes, const char* what) {
  if (device_ == nullptr) {
    bytes_taken_ += bytes;
    return static_cast<void*>(nullptr);
  }
  void* memory = allocate(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) {
    return resource_exhausted(
        "not enough memory for " + std::string(what) + ": " + std::to_string(bytes >> 20) +
        " MiB wanted, " + std::to_string(device_->free_memory() >> 20) +
        " MiB free; lower --max-model-len, --max-num-seqs or the KV cache size");
  }
  blocks_.push_back(memory);
  bytes_taken_ += bytes;
  return memory;
}

}  // namespace foretoken
