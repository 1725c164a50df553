#pragma once
#include <cstdint>

namespace foretoken {

// The share of a mixture's experts that `rows` rows touch, each of which chooses top_k of `count`
// independently of the others.
double touched_share(int count, int top_k, int64_t rows);

}  // namespace foretoken
