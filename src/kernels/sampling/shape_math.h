#pragma once
#include "kernels/sample_math.h"

// The arithmetic of shaped logits, shared by the CPU and the CUDA kernel: single-rounded operations
// (sample_math.h), so that both devices make the same bits.
namespace foretoken::shape_math {

// Repetition penalty r of an id that the history holds (Keskar et al. 2019).
FT_HD_INLINE float repeated(float logit, float penalty) {
  return logit > 0.0f ? sample_math::div(logit, penalty) : sample_math::mul(logit, penalty);
}

// The presence or frequency penalty, taken away `times` times.
FT_HD_INLINE float lowered(float logit, float penalty, int times) {
  for (int i = 0; i < times; ++i) {
    const float next = sample_math::sub(logit, penalty);
    if (next == logit) break;  // nothing changes any more
    logit = next;
  }
  return logit;
}

}  // namespace foretoken::shape_math
