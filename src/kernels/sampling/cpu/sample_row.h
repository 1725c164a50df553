#pragma once
#include <cstdint>

#include "kernels/step_types.h"

namespace foretoken::cpu {

// One row of logits and what its request asks for.
struct SampleRow {
  const float* logits;  // [vocab]
  const SlotParams* params;
  int32_t vocab;
  int32_t position;     // of the token to be sampled
  bool masks_stop_ids;  // the stop ids count as -inf
};

// What is kept before the draw: ids with a logit from `floor` on whose weight, exp((logit - max) /
// temperature), is at least `min_p`.
struct KeptIds {
  float max;
  float temperature;
  float min_p;
  float floor;
};

// What a row keeps whose highest logit is `max`; temperature 0 keeps that one, at temperature 1.
KeptIds kept_ids(const SampleRow& row, float max);

// The sampled id, or -1 (kernels/sampling/sample.h gives the rules). Uses the stack only: the row
// is read once for the maximum, three times for each of top_k and top_p that is on, and once for
// the draw.
int32_t sample_row(const SampleRow& row);

}  // namespace foretoken::cpu
