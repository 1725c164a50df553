#include "draft/parts/device_ids.h"

#include <cstring>
#include <memory>

namespace foretoken {

Result<const int32_t*> upload_ids(Device& device, Arena& arena, const std::vector<int32_t>& ids,
                                  const char* what) {
  if (ids.empty()) return static_cast<const int32_t*>(nullptr);
  const size_t bytes = ids.size() * sizeof(int32_t);
  FT_ASSIGN_OR_RETURN(int32_t* memory, arena.take_array<int32_t>(ids.size(), what));
  Arena staging(device, MemoryKind::kPinned);
  FT_ASSIGN_OR_RETURN(void* pinned, staging.take(bytes, what));
  std::memcpy(pinned, ids.data(), bytes);
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Queue> queue, device.make_queue());
  queue->copy(memory, pinned, bytes);
  FT_RETURN_IF_ERROR(queue->drain());
  return static_cast<const int32_t*>(memory);
}

}  // namespace foretoken
