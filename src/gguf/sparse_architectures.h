#pragma once
#include <span>

#include "gguf/hf_names.h"

namespace foretoken {

// Part of gguf_architectures: models whose attention is sparse by blocks (MiniMax M3) or by entries
// of several positions (DeepSeek V4).
std::span<const GgufArchitecture> sparse_gguf_architectures();

}  // namespace foretoken
