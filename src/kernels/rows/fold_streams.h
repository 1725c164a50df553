#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

inline constexpr int kMaxHyperStreams = 4;

// What hyper-connections learn of streams.
enum class StreamWeights : int32_t {
  kEnter,  // how much of each enters a part
  kGive,   // and how much of what the part makes goes to each; streams keep themselves (Hy4)
  kMix,    // and how much of each stream goes to which
};
// How many numbers that are of S streams, and how many scales these have.
FT_HD constexpr int32_t num_hyper_weights(int32_t streams, StreamWeights learned) {
  return learned == StreamWeights::kMix    ? (2 + streams) * streams
         : learned == StreamWeights::kGive ? 2 * streams
                                           : streams;
}
FT_HD constexpr int32_t num_hyper_scales(StreamWeights learned) {
  return static_cast<int32_t>(learned) + 1;
}

// Folds the S streams of hidden states of each live token row into one (manifold-constrained
// hyper-connections, Xie et al. 2026), by weights that the row says itself. With
// r = (streams of the row, one behind the other) / sqrt(mean of their squares + norm_eps) and
// w[i] = fn[i] . r:
//   in[s]  = sigmoid(w[s] * scale[0] + base[s]) + eps
//   out[s] = gift sigmoid(w[S + s] * scale[1] + base[S + s]), plus eps where streams do not mix
//   mix[j] = softmax over s of (w[2S + jS + s] * scale[2] + base[2S + jS + s]), plus eps; then
//            columns are divided by their sums + eps, and `rounds` - 1 times rows, then columns;
//            without rounds nothing of it is learned, and each stream keeps itself
//   folded = sum over s of in[s] * stream s
// out and mix go to `weights`, [S + S * S] of each row, where they are made (`weights` not null).
struct FoldStreamsArgs {
  static constexpr Op kOp = Op::kFoldStreams;
  const StepCounts* counts;
  const float* streams;  // [max_rows, S, size]
  const float* fn;       // [num_hyper_weights, S * size]
  const float* base;     // [num_hyper_weights]
  const float* scale;    // [num_hyper_scales]
  float* folded;         // [max_rows, size]
  float* weights;        // [max_rows, S + S * S] or null
  int32_t num_streams;   // 2 to kMaxHyperStreams
  int32_t max_rows;
  int32_t size;
  int32_t rounds;
  float norm_eps;
  float eps;
  float gift = 2;

  FT_HD StreamWeights learned() const {
    if (weights == nullptr) return StreamWeights::kEnter;
    return rounds > 0 ? StreamWeights::kMix : StreamWeights::kGive;
  }
};

void fold_streams(Queue& queue, const FoldStreamsArgs& args);

}  // namespace foretoken
