#pragma once
#include <foretoken/config.h>

#include <string>

#include "base/result.h"
#include "device/device.h"
#include "gguf/model_files.h"
#include "model/config/config.h"

namespace foretoken {

// `config`'s kv_cache_dtype; instead of auto, as in vLLM, fp8 where the checkpoint's own config
// asks for that and the device and the attention backend have it. What was chosen is logged.
Result<std::string> resolve_kv_cache_dtype(const EngineConfig& config, const Device& device,
                                           const ModelFiles& target, const ModelConfig& model);

}  // namespace foretoken
