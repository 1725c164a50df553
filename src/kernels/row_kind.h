#pragma once
#include <cstdint>

namespace foretoken {

// Which live count a row-wise op follows.
enum class RowKind : int32_t { kToken, kLogits };

}  // namespace foretoken
