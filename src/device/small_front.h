#pragma once
#include <cstddef>

#include "device/device.h"

namespace foretoken {

// How much of the front of a pool is taken piece by piece.
inline constexpr size_t kSmallFront = size_t{2} << 20;

// For memory of `allocate` that is used from its front on, as far as sequences need it, such as
// each part of a drafter's KV cache: asks for the smallest pages in its first kSmallFront bytes. A
// short chat with a small model then takes what it uses instead of one huge page for each part.
// Behind the front pages stay huge, so that long contexts are read as before and what lies idle is
// never more than what is used.
void prefer_small_front(Device& device, void* memory, size_t bytes);

}  // namespace foretoken
