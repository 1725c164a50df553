#pragma once
#include <span>

#include "gguf/hf_names.h"

namespace foretoken {

// Part of gguf_architectures: models with latent attention, of DeepSeek V2 and V3 and their kin
// and, with indexers, of DeepSeek V3.2 and GLM 5.
std::span<const GgufArchitecture> latent_gguf_architectures();

}  // namespace foretoken
