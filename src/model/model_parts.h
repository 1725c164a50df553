#pragma once
#include "attention/backend.h"
#include "compat/compat.h"
#include "model/config/config.h"
#include "model/registry.h"

namespace foretoken {

// What a model's config says of a combination (compat/compat.h).

// What it asks of attention where sequences have up to `max_model_len` tokens (0 or less: not
// known) in blocks of `block_size` (0: not asked about).
AttentionDemand demand_of(const ModelConfig& config, int max_model_len, int block_size);

// Adds all that the config tells: type, attention, layers, states, experts. max_model_len: 0: as
// long as the model allows; -1: not known yet.
void add_model(const ModelConfig& config, int max_model_len, int block_size, Combination* c);

// Whether ranks, stages and lanes as of the options have such layers: OK or the sentence of compat.
Status check_division(const ModelConfig& config, const LoadOptions& options);

}  // namespace foretoken
