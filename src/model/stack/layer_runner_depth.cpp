#include "model/stack/layer_runner.h"

// Layers whose parts read what earlier blocks of layers left (DepthSpec).

namespace foretoken {

// residual += delta; normed = norm(what the query reads of earlier blocks and the residual).
void LayerRunner::enter_depth(const LayerRows& rows, const float* delta, const float* query,
                              int32_t blocks, const Norm& norm) {
  float* mixed = carried_->depth.mix(rows, query, blocks, residual_, delta);
  norm_rows(rows, mixed, nullptr, norm, norm_size(), {normed_, config_.dtype});
}

}  // namespace foretoken
