#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"

namespace foretoken {

// A copy of `ids` in memory of `arena`, which is the device's; null for none. Start-up only, blocks
// until done. ResourceExhausted names `what`.
Result<const int32_t*> upload_ids(Device& device, Arena& arena, const std::vector<int32_t>& ids,
                                  const char* what);

}  // namespace foretoken
