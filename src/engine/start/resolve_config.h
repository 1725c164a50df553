#pragma once
#include <foretoken/config.h>

#include "base/result.h"
#include "device/device.h"
#include "model/config/config.h"

namespace foretoken {

// The device that a configuration names, with its op table.
Result<std::unique_ptr<Device>> open_configured_device(const EngineConfig& config);

// A copy of `config` with every automatic choice made for this device and model, or the first
// contradiction found. What it chose is logged at info. A max_model_len of -1 stays: it takes the
// loaded model to choose it (see kv_budget.h).
Result<EngineConfig> resolve_config(const EngineConfig& config, const Device& device,
                                    const ModelConfig& model);

}  // namespace foretoken
