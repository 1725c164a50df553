#pragma once
#include "kernels/lora/lora.h"

namespace foretoken::cuda {

// For float, and for rows that do not begin on 16 bytes.
void launch_lora_shrink_plain(const LoraShrinkArgs& args, cudaStream_t stream);

}  // namespace foretoken::cuda
