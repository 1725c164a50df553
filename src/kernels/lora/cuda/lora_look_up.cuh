#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/lora/lora.h"

namespace foretoken::cuda {

// The op lora_shrink with token_ids.
void launch_lora_look_up(const LoraShrinkArgs& args, cudaStream_t stream);

}  // namespace foretoken::cuda
