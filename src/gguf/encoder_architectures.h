#pragma once
#include <span>

#include "gguf/hf_names.h"

namespace foretoken {

// Part of gguf_architectures: models that make vectors of texts or judge them and write none.
std::span<const GgufArchitecture> encoder_gguf_architectures();

}  // namespace foretoken
