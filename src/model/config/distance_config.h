#pragma once
#include <cstdint>

namespace foretoken {

// What scores get, beside products of queries and keys, from the distance of a key (disentangled
// attention, He et al. 2021; DeBERTa): a table of vectors of distances to both sides.
struct DistanceConfig {
  int32_t side = 0;     // rows of the table for distances to either side; 0: there is none
  int32_t buckets = 0;  // of distances to a side, which grow; 0: each distance is one
  int32_t reach = 0;    // farther keys are as this far
  bool normed = false;  // there is a norm of its rows

  int32_t places() const { return 2 * side; }
  bool exists() const { return side > 0; }
};

}  // namespace foretoken
