#pragma once
#include <vector>

namespace foretoken {

// Which steps a StepProfile times.

// Sizes up to `most`, each once, in the order in which they are to be timed: 1, 2, 4, ... `most`,
// every second one first, so that a short time still spans the sizes. Then, if `tiles`, an eighth
// more than 64, 128 and 256: kernels that work in tiles of rows begin another one there.
std::vector<int> profile_sizes(int most, bool tiles);

// Numbers of drafts a sequence, growing from 0 to `most`: the others lie between.
std::vector<int> profile_drafts(int most);

}  // namespace foretoken
