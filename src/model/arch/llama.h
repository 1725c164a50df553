#pragma once
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "model/model.h"
#include "model/registry.h"

namespace foretoken {

// LlamaForCausalLM (Touvron et al. 2023; Grattafiori et al. 2024): pre-norm blocks of grouped-query
// attention with rotary positions and a gated SiLU MLP; embeddings tied or not, optional biases.

// Bytes that the weights take in device memory, in the type the config names.
int64_t llama_weight_bytes(const ModelConfig& config);

// Loads the weights and takes the scratch; errors as in load_model.
Result<std::unique_ptr<Model>> load_llama(Device& device, const ModelConfig& config,
                                          WeightLoader& loader, const LoadOptions& options);

}  // namespace foretoken
