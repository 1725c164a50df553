#pragma once
#include <cmath>
#include <cstring>

#include "support/random_data.h"

namespace foretoken {

// Entries of `dim` values each as KvFormat::kInt8 lays them out, with the exact float of each
// element.
inline TypedData int8_data(const std::vector<float>& values, size_t dim) {
  TypedData out{std::vector<uint8_t>(values.size() / dim * (dim + sizeof(float))), values};
  uint8_t* entry = out.bytes.data();
  for (size_t first = 0; first < values.size(); first += dim, entry += dim + sizeof(float)) {
    float highest = 1e-20f;
    for (size_t i = first; i < first + dim; ++i) highest = std::max(highest, std::abs(values[i]));
    const float scale = highest / 127;
    for (size_t i = 0; i < dim; ++i) {
      const auto code = static_cast<int8_t>(std::lround(values[first + i] / highest * 127));
      entry[i] = static_cast<uint8_t>(code);
      out.values[first + i] = scale * code;
    }
    std::memcpy(entry + dim, &scale, sizeof scale);
  }
  return out;
}

}  // namespace foretoken
