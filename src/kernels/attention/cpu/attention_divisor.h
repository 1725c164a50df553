#pragma once
#include "kernels/attention/attention.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {

// What the weighted sum of values of a query head is divided by in the end: the sum of the weights,
// which are relative to the highest score `max`, and with sinks (as of AttentionArgs) the weight of
// the head's sink. Infinite where the sink lies so far above all scores that nothing else counts.
inline float attention_divisor(const float* sinks, int head, float max, float sum) {
  if (sinks == nullptr) return sum;
  const float above = sinks[head] - max;
  if (above > 0) return sum + 1.0f / sample_math::exp_nonpositive(-above);
  return sum + sample_math::exp_nonpositive(above);
}
inline float attention_divisor(const AttentionArgs& a, int head, float max, float sum) {
  return attention_divisor(a.sinks, head, max, sum);
}

}  // namespace foretoken::cpu
