#pragma once
#include "compat/compat.h"
#include "model/layer/layer_spec.h"

namespace foretoken {

// What a layer of the model does that not every layout has, whichever rank has it: the part of it
// that its own mixer and feed-forward parts tell.
LayerNeeds needs_of(const LayerSpec& layer);

}  // namespace foretoken
