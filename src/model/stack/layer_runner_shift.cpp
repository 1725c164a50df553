#include "kernels/linear/shift_rows.h"
#include "kernels/rows/mix_streams.h"
#include "model/stack/layer_runner.h"

// What some layers do to the residual, and to normed rows, before a part (Doge, RWKV).

namespace foretoken {

// What the feed-forward part reads: the normed rows, or these mixed with the rows before them,
// whose history lies behind the mixer's.
const void* LayerRunner::shifted(const LayerRows& rows, const LayerState& state,
                                 const DecoderLayer& layer) {
  if (layer.feed_forward_shift == nullptr) return normed_;
  const int32_t hidden = config_.hidden_size;
  shift_rows(rows.queue, {.counts = rows.counts,
                          .x = normed_,
                          .mixes = layer.feed_forward_shift,
                          .positions = rows.positions,
                          .row_slot = rows.row_slot,
                          .history = state.history + hidden,
                          .out = shifted_,
                          .num_mixes = 1,
                          .size = hidden,
                          .max_rows = rows.max_rows,
                          .history_rows = state.history_rows,
                          .history_stride = 2 * hidden,
                          .dtype = config_.dtype});
  return shifted_;
}

// Streams that nothing is routed to stay as they are, but for the vector.
void LayerRunner::weigh_residual(const LayerRows& rows, const float* factors) {
  if (factors == nullptr) return;
  mix_streams(rows.queue, {.counts = rows.counts,
                           .streams = residual_,
                           .routed = zeros_,
                           .weights = zeros_,
                           .activated = nullptr,
                           .out = residual_,
                           .out_scale = factors,
                           .num_streams = 1,
                           .active = 0,
                           .max_rows = rows.max_rows,
                           .stream_rows = rows.max_rows,
                           .size = config_.hidden_size,
                           .scale = 1});
}

}  // namespace foretoken
