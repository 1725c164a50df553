#pragma once
#include <span>

#include "gguf/hf_names.h"

namespace foretoken {

// The part of gguf_architectures() that came before most of Llama's kin, or under names of its own.
std::span<const GgufArchitecture> early_gguf_architectures();

}  // namespace foretoken
