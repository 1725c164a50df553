#pragma once
#include <foretoken/config.h>

#include "base/result.h"
#include "device/device.h"
#include "model/config.h"

namespace foretoken {

// The device that a configuration names, with its op table.
Result<std::unique_ptr<Device>> open_configured_device(const EngineConfig& config);

// A copy of `config` with every automatic choice made for this device and model, or the first
// contradiction found. What it chose is logged at info.
Result<EngineConfig> resolve_config(const EngineConfig& config, const Device& device,
                                    const ModelConfig& model);

// Number of KV blocks, the null block included: from the override, from kv_cache_memory_bytes, or
// from free memory after the weights, but never more than all sequences at full length can use.
// ResourceExhausted when one sequence of max_model_len does not fit and there is no override.
Result<int> choose_num_blocks(const EngineConfig& resolved, const Device& device,
                              int64_t bytes_per_block);

}  // namespace foretoken
