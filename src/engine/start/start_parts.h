#pragma once
#include <foretoken/config.h>

#include "compat/compat.h"
#include "device/device.h"
#include "model/config/config.h"

namespace foretoken {

// Adds what the name of the model says of its files, beside --load-format.
void add_files(const EngineConfig& config, Combination* c);

// All that is known of an engine once its device is open and its model's config is read, but for
// the attention that is chosen where none is named.
Combination parts_of(const EngineConfig& config, const Device& device, const ModelConfig& model);

}  // namespace foretoken
