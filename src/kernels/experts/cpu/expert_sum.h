#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/activation_math.h"

namespace foretoken::cpu {

// What the sum over a row's experts begins with, in columns [col, col + n): what the shared expert
// made of the row, times the sigmoid of its gate where there is one, or zeros. `a` has `shared`
// (rows `stride` apart, or null), `shared_gate` ([rows] or null).
template <class Args>
void begin_expert_sum(const Args& a, int64_t stride, int64_t row, int col, int n, float* sum) {
  if (a.shared == nullptr) {
    std::fill_n(sum, n, 0.0f);
    return;
  }
  const float scale =
      a.shared_gate != nullptr ? activation_math::sigmoid(a.shared_gate[row]) : 1.0f;
  const float* from = a.shared + row * stride + col;
  for (int i = 0; i < n; ++i) sum[i] = from[i] * scale;
}

}  // namespace foretoken::cpu
