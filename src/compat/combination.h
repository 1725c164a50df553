#pragma once
#include <foretoken/config.h>

#include "compat/compat.h"

namespace foretoken {

// Ids behind the model's that adapters of an engine may have rows for.
int added_ids_of(const EngineConfig& config);

// All that an engine's configuration tells of it, before anything is read or opened: what neither
// the configuration nor its defaults decide is not known.
Combination combination_of(const EngineConfig& config);
// Adds that to what is known of a model, whose attention then is about the configured blocks.
void add_config(const EngineConfig& config, Combination* c);

}  // namespace foretoken
