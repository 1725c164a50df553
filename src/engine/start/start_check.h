#pragma once
#include <foretoken/config.h>

#include "base/result.h"
#include "compat/compat.h"

namespace foretoken {

// What a start with this configuration would say of what goes together, without a device, files or
// weights: the sentences of compat in the order in which the engine asks them, as far as its
// configuration and what is known of the model (the parts that model/model_parts.h adds) tell.
Status check_start(const EngineConfig& config, const Combination& model);

}  // namespace foretoken
