#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

inline constexpr int kMaxStreams = 8;

// Moves the S streams of hidden states of each live token row by what a router says of the row
// (AltUp, Baykal et al. 2023; Gemma 3n), in place. With t = tanh(routed * scale):
//   predict (activated null):  x[i] += sum over j of (sum over p of weights[i * S + j][p] t[p])
//   x[j] correct:  x[i] += (1 + sum over p of weights[i][p] t[p]) * (activated - x[active])
// where the right sides have what entered. Then out = x[active], times out_scale where that is
// given; of one stream that predicts, `out` may be `streams`.
struct MixStreamsArgs {
  static constexpr Op kOp = Op::kMixStreams;
  const StepCounts* counts;
  float* streams;          // [S, stream_rows, size]
  const float* routed;     // [max_rows, S]
  const float* weights;    // [S * S, S], or [S, S] to correct
  const float* activated;  // [max_rows, size] or null
  float* out;              // [max_rows, size]; may be `activated`
  const float* out_scale;  // [size] or null
  int32_t num_streams;
  int32_t active;
  int32_t max_rows;
  int32_t stream_rows;  // rows from one stream to the next, at least max_rows
  int32_t size;
  float scale;
};

void mix_streams(Queue& queue, const MixStreamsArgs& args);

}  // namespace foretoken
