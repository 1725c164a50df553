#pragma once
#include <span>

#include "gguf/hf_names.h"

namespace foretoken {

// Part of gguf_architectures: models with linear attention, Qwen 3 Next and Qwen 3.5.
std::span<const GgufArchitecture> linear_gguf_architectures();

}  // namespace foretoken
