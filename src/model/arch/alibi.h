#pragma once
#include <cstdint>
#include <vector>

#include "model/config/config.h"

namespace foretoken {

// Slopes of ALiBi (Press et al. 2021) for the heads of a model: a score falls by slope * distance.
// Powers of 2^(-8 / n) for the largest power of two n that is at most num_heads, then odd powers of
// those for 2n (BLOOM, Falcon).
std::vector<float> alibi_slopes(int32_t num_heads);
// Of the smallest power of two n that is at least num_heads: powers of 2^(-most / n), those of even
// numbers first where n is larger (MPT).
std::vector<float> alibi_slopes_by_parity(int32_t num_heads, float most);

// Scores fall by the slopes in all layers, which then have no rotary positions.
void fall_with_distance(ModelConfig* config, std::vector<float> slopes);

}  // namespace foretoken
