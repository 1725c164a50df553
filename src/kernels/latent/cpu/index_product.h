#pragma once
#include "kernels/cpu/hot.h"

namespace foretoken::cpu {

// q . key of an indexer, in floats of one order; dim is a multiple of kLanes.
template <class T>
FT_INLINE float index_product(const T* q, const T* key, int dim) {
  Lanes sum = {};
  for (int i = 0; i < dim; i += kLanes) {
    Lanes a, b;
    load(a, q + i);
    load(b, key + i);
    sum += a * b;
  }
  return sum_lanes(sum);
}

}  // namespace foretoken::cpu
