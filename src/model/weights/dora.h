#pragma once
#include <string>

#include "base/result.h"
#include "gguf/model_files.h"
#include "model/weights/lora_adapter.h"

namespace foretoken {

// Reads what the outputs of the linear layers are multiplied by that an adapter has magnitudes for
// (DoRA, Liu et al. 2024; LoraLinear::magnitude) into LoraLinear::factors: each magnitude divided
// by the length of its row of the model's matrix with the adapter in it, as PEFT takes it. Nothing
// for other adapters, and for modules that are none of a decoder.
// Reads the adapter at `folder` and those matrices of the model, by several threads. Unsupported,
// with the remedy, for a matrix that the model's files have not by that name, and for embeddings
// and output matrices; InvalidArgument for other shapes. Any thread.
Status read_magnitudes(const std::string& folder, const ModelFiles& model, LoraAdapter* adapter);

}  // namespace foretoken
