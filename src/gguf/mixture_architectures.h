#pragma once
#include <span>

#include "gguf/hf_names.h"

namespace foretoken {

// Part of gguf_architectures: mixtures of experts whose attention is of the plain kind, GLM 4.5,
// MiniMax M2, dots.llm1, ERNIE 4.5, Hunyuan, Granite, Phi 3.5 and Llama 4 among them.
std::span<const GgufArchitecture> mixture_gguf_architectures();

}  // namespace foretoken
