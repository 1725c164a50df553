#pragma once
#include <foretoken/config.h>

#include "base/result.h"
#include "device/device.h"
#include "model/config/config.h"

namespace foretoken {

// Chooses the attention backend: attention_backend becomes its name, and batch_invariant "on" or
// "off", as the backend is. `auto` chooses a backend that is not invariant only where
// batch_invariant is off; a backend asked for by name decides where that is auto. max_model_len is
// resolved. InvalidArgument or Unsupported names what contradicts and the remedy.
Status resolve_attention(EngineConfig& config, const Device& device, const ModelConfig& model);

}  // namespace foretoken
