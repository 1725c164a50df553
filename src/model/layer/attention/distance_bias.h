#pragma once
#include <cstdint>

#include "model/layer/layer_spec.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// Which of `buckets` a key that stands `behind` a row belongs to (Raffel et al. 2020): half of them
// for each side, half of these for one distance each, the others for distances up to kBiasReach
// that grow by a factor. buckets: a multiple of 4.
int32_t distance_bucket(int32_t behind, int32_t buckets);

// Reads what the buckets of a model's heads add to scores, as AttentionArgs::distance_bias wants it
// of all heads; zeros for random weights.
Status load_distance_bias(PartLoader& loader, const GqaSpec& whole, const float** out);

}  // namespace foretoken
