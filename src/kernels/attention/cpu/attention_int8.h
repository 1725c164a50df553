#pragma once
#include "kernels/attention/cpu/attention_tile.h"
#include "kernels/attention/cpu/int8_kernels.h"

namespace foretoken::cpu {

// Attention of a tile over a cache of KvFormat::kInt8. Queries are rounded to 16 bits with a scale
// for each, scores are exact integer dots times the three scales, and the sums over values keep the
// softmax weights in float. The bits of a row depend neither on the tile nor on the kernels. Needs
// memory of the calling thread, taken on its first call.
void attend_int8_tile(const Int8Kernels& kernels, const AttentionArgs& a,
                      const AttentionTile& tile);

}  // namespace foretoken::cpu
