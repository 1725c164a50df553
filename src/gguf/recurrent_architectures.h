#pragma once
#include <span>

#include "gguf/hf_names.h"

namespace foretoken {

// Part of gguf_architectures: models with short convolutions or with Mamba 2.
std::span<const GgufArchitecture> recurrent_gguf_architectures();

}  // namespace foretoken
