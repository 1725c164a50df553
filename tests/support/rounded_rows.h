#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/float8.h"
#include "kernels/rows/round_rows.h"

namespace foretoken {

// What codes and scales of round_rows stand for: rows of so many columns.
inline std::vector<float> rounded_rows(const std::vector<float>& x, int64_t columns) {
  std::vector<float> rounded = x;
  for (size_t row = 0; row < x.size(); row += static_cast<size_t>(columns)) {
    for (int64_t first = 0; first < columns; first += kRoundedGroup) {
      float* own = rounded.data() + row + first;
      const int64_t count = std::min<int64_t>(kRoundedGroup, columns - first);
      float highest = 0;
      for (int64_t i = 0; i < count; ++i) highest = std::max(highest, std::abs(own[i]));
      const float scale = fp8_group_scale(highest);
      for (int64_t i = 0; i < count; ++i) own[i] = e4m3_value(e4m3_code(own[i] / scale)) * scale;
    }
  }
  return rounded;
}

}  // namespace foretoken
