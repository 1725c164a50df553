#pragma once
#include <cstdint>

#include "kernels/comm/stage_exchange.h"
#include "model/config/config.h"
#include "model/layer/layer_rows.h"

namespace foretoken {

// One side of a cut between two stages. Both sides go through what rows have in the same order.
struct StageCut {
  const void* comm;           // as of stage_exchange.h
  const LayerConfig& behind;  // the layer that the next stage begins with
  int32_t layer;              // its number
  bool sends;                 // to the next stage; otherwise from the one before

  // Enqueues that the live rows of x [max_rows, columns] go over the cut.
  void cross(const LayerRows& rows, float* x, int32_t columns) const {
    if (sends) {
      send_rows(rows.queue, {comm, rows.counts, x, rows.max_rows, columns});
    } else {
      receive_rows(rows.queue, {comm, rows.counts, x, rows.max_rows, columns});
    }
  }
};

}  // namespace foretoken
