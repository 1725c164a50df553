#pragma once
#include <cstdint>

namespace foretoken {

// Bytes of this process that are in memory.
int64_t resident_bytes();

}  // namespace foretoken
