#pragma once
#include "kernels/lora/lora.h"

namespace foretoken::cuda {

// LoraExpandArgs::gated.
void launch_lora_gates(const LoraExpandArgs& args, cudaStream_t stream);

}  // namespace foretoken::cuda
