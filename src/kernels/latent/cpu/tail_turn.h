#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/attention/kv_layer.h"
#include "kernels/cpu/hot.h"

namespace foretoken::cpu {

// How the last elements of heads at one position turn, in pairs that lie side by side.
struct TailTurn {
  int pairs;
  float cos[kMaxHeadDim / 2];
  float sin[kMaxHeadDim / 2];
};

// back: against the usual sense.
inline void make_tail_turn(const float* inv_freq, int pairs, float scaling, int position, bool back,
                           TailTurn* out) {
  out->pairs = pairs;
  for (int i = 0; i < pairs; ++i) {
    const float angle = static_cast<float>(position) * inv_freq[i];
    out->cos[i] = std::cos(angle) * scaling;
    out->sin[i] = (back ? -std::sin(angle) : std::sin(angle)) * scaling;
  }
}

// In place, of a head of `dim` floats.
FT_INLINE void turn_tail(const TailTurn& turn, float* head, int dim) {
  float* tail = head + dim - 2 * turn.pairs;
  for (int i = 0; i < turn.pairs; ++i) {
    const float a = tail[2 * i], b = tail[2 * i + 1];
    tail[2 * i] = a * turn.cos[i] - b * turn.sin[i];
    tail[2 * i + 1] = b * turn.cos[i] + a * turn.sin[i];
  }
}

// And divides it by its length, times `norm` [dim] where that is given.
FT_INLINE void norm_head(float* head, int dim, float eps, const float* norm) {
  const float mean = sum_of_squares(head, dim) / static_cast<float>(dim);
  const float factor = 1.0f / std::sqrt(mean + eps);
  for (int i = 0; i < dim; ++i) head[i] *= factor;
  if (norm == nullptr) return;
  for (int i = 0; i < dim; ++i) head[i] *= norm[i];
}

}  // namespace foretoken::cpu
